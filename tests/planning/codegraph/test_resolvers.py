"""Includes of every language that has them, on trees small enough to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.values import ImportCount
from tests.planning.codegraph.trees import includes, plant, scanned

CASES: dict[str, tuple[dict[str, str | bytes], set[tuple[str, str]]]] = {
    "c: own directory, include roots, the nearest path that ends so": (
        {
            "src/a.c": '#include "a.h"\n#include <lib/b.h>\n#include "deep/c.h"\n#include <stdio.h>\n',
            "src/a.h": "",
            "include/lib/b.h": "",
            "other/deep/c.h": "",
            "src/x/deep/c.h": "",
            "stdio.d/stdio.h": "",
        },
        {("src/a.c", "src/a.h"), ("src/a.c", "include/lib/b.h"), ("src/a.c", "src/x/deep/c.h")},
    ),
    "python: dots, packages, src roots, modules before names": (
        {
            "src/p/__init__.py": "from . import q\nfrom .q import name, r\n",
            "src/p/q/__init__.py": "",
            "src/p/q/r.py": "from ...p import missing\nfrom ..s import *\n",
            "src/p/s.py": "import p.q.r, os.path\n",
            "tests/test_p.py": "import p\nfrom p.q import (\n    r as other,  # why\n)\nimport sibling\n",
            "tests/sibling.py": "from p import(s)\nfrom p.q \\\n    import r\n",
        },
        {
            ("src/p/__init__.py", "src/p/q/__init__.py"),
            ("src/p/__init__.py", "src/p/q/r.py"),
            ("src/p/q/r.py", "src/p/__init__.py"),
            ("src/p/q/r.py", "src/p/s.py"),
            ("src/p/s.py", "src/p/q/r.py"),
            ("tests/test_p.py", "src/p/__init__.py"),
            ("tests/test_p.py", "src/p/q/r.py"),
            ("tests/test_p.py", "tests/sibling.py"),
            ("tests/sibling.py", "src/p/s.py"),
            ("tests/sibling.py", "src/p/q/r.py"),
        },
    ),
    "typescript: compiled names, indexes, aliases, workspace packages": (
        {
            "tsconfig.json": '{ // comment\n "compilerOptions": {"baseUrl": ".", "paths": {"@/*": ["app/*"],},} }',
            "app/main.ts": (
                "import a from './a.js';\nimport '@/deep/b';\nexport * from './dir';\nimport t from 'app/c';\n"
                "import type { T } from './types';\nimport x = require('./a');\nimport w from '@me/lib/util';\n"
                "import react from 'react';\nconst l = await import('./lazy');\n"
            ),
            "app/a.ts": "",
            "app/deep/b.tsx": "",
            "app/dir/index.ts": "",
            "app/c.ts": "",
            "app/types.d.ts": "",
            "app/lazy.mts": "",
            "packages/lib/package.json": '{"name": "@me/lib"}',
            "packages/lib/src/util.ts": "",
        },
        {
            ("app/main.ts", target)
            for target in (
                "app/a.ts",
                "app/deep/b.tsx",
                "app/dir/index.ts",
                "app/c.ts",
                "app/types.d.ts",
                "app/lazy.mts",
                "packages/lib/src/util.ts",
            )
        },
    ),
    "javascript: require, and no strings or comments": (
        {
            "a.js": "const b = require('./b');\n// require('./c')\nconst s = \"import './c'\";\nmodule.exports = b;\n",
            "b.js": "export { x } from './d.mjs';\n",
            "c.js": "",
            "d.mjs": "",
        },
        {("a.js", "b.js"), ("b.js", "d.mjs")},
    ),
    "go: all files of a package but its tests": (
        {
            "go.mod": "module example.com/m\n",
            "main.go": 'package main\nimport (\n "fmt"\n x "example.com/m/sub"\n)\n',
            "sub/a.go": "package sub\n",
            "sub/b.go": "package sub\n",
            "sub/a_test.go": "package sub\n",
        },
        {("main.go", "sub/a.go"), ("main.go", "sub/b.go")},
    ),
    "rust: mod, crate, self, super, and another crate of the workspace": (
        {
            "one/Cargo.toml": '[package]\nname = "crate-one"\n',
            "one/src/lib.rs": "mod a;\npub mod b;\nuse self::b::c::Thing;\n",
            "one/src/a.rs": "use crate::b::c;\nuse super::b;\nuse std::io;\n",
            "one/src/b/mod.rs": "pub mod c;\n",
            "one/src/b/c.rs": "use super::super::a::{self, f};\n",
            "two/Cargo.toml": '[package]\nname = "two"\n',
            "two/src/main.rs": "use crate_one::b::{c::Thing as T};\n",
        },
        {
            ("one/src/lib.rs", "one/src/a.rs"),
            ("one/src/lib.rs", "one/src/b/mod.rs"),
            ("one/src/lib.rs", "one/src/b/c.rs"),
            ("one/src/a.rs", "one/src/b/c.rs"),
            ("one/src/a.rs", "one/src/b/mod.rs"),
            ("one/src/b/mod.rs", "one/src/b/c.rs"),
            ("one/src/b/c.rs", "one/src/a.rs"),
            ("two/src/main.rs", "one/src/b/c.rs"),
        },
    ),
    "java and kotlin: by declared package and type": (
        {
            "src/A.java": "package com.x;\nimport com.y.B;\nimport static com.y.B.f;\nimport com.z.*;\n",
            "other/B.java": "package com.y;\npublic class B {}\n",
            "z/C.kt": "package com.z\nimport com.y.B\nclass C\n",
            "z/D.kt": "package com.z\nimport com.x.A as Other\nfun top() {}\n",
            "z/E.kt": "package com.e\nimport com.z.top\n",
        },
        {
            ("src/A.java", "other/B.java"),
            ("src/A.java", "z/C.kt"),
            ("src/A.java", "z/D.kt"),
            ("z/C.kt", "other/B.java"),
            ("z/E.kt", "z/D.kt"),
        },
    ),
    "scala: selectors": (
        {
            "A.scala": "package a\nimport b.{C, D => E}\n",
            "B.scala": "package b\nclass C\n",
            "D.scala": "package b\nobject D\n",
        },
        {("A.scala", "B.scala"), ("A.scala", "D.scala")},
    ),
    "php: PSR-4, declared names, files": (
        {
            "composer.json": '{"autoload": {"psr-4": {"App\\\\": "app/"}}}',
            "app/Models/User.php": "<?php namespace App\\Models; class User {}",
            "index.php": "<?php use App\\Models\\User; use Old\\{Thing, Other as O}; require __DIR__ . '/boot.php';",
            "boot.php": "<?php",
            "legacy/things.php": "<?php namespace Old; class Thing {} class Other {}",
        },
        {("index.php", "app/Models/User.php"), ("index.php", "legacy/things.php"), ("index.php", "boot.php")},
    ),
    "ruby, lua, shell": (
        {
            "lib/r.rb": "require_relative 'x/y'\nrequire 'gem/inner'\n",
            "lib/x/y.rb": "",
            "lib/gem/inner.rb": "",
            "main.lua": "local m = require 'pkg.mod'\ndofile('run.lua')\n",
            "pkg/mod/init.lua": "",
            "run.lua": "",
            "bin/go.sh": '. "$(dirname "$0")/lib.sh"\nsource ../top.sh\n',
            "bin/lib.sh": "",
            "top.sh": "",
        },
        {
            ("lib/r.rb", "lib/x/y.rb"),
            ("lib/r.rb", "lib/gem/inner.rb"),
            ("main.lua", "pkg/mod/init.lua"),
            ("main.lua", "run.lua"),
            ("bin/go.sh", "bin/lib.sh"),
            ("bin/go.sh", "top.sh"),
        },
    ),
    "csharp and swift: none, for a using names a namespace": (
        {
            "A.cs": "using B;\nnamespace A { class X {} }\n",
            "B.cs": "namespace B { class Y {} }\n",
            "c.swift": "import B\n",
        },
        set(),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_includes_lead_to_the_files_that_the_language_would_read(tmp_path: Path, case: str) -> None:
    files, expected = CASES[case]
    assert includes(scanned(tmp_path, files)) == expected


def test_a_directory_that_is_a_package_is_imported_by_its_own_name(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "__init__.py": "from pkg.sub import thing\n",
        "sub/__init__.py": "",
        "sub/deep.py": "import pkg\nfrom pkg import top\nimport pkg.gone.further\n",
        "top.py": "from pkg.sub.deep import x\nimport other.top\n",
    }
    expected = {
        ("__init__.py", "sub/__init__.py"),
        ("sub/deep.py", "__init__.py"),
        ("sub/deep.py", "top.py"),
        ("top.py", "sub/deep.py"),
    }
    options = ScanOptions(workers=0, cache_dir=tmp_path / "cache")
    for name, found in (("pkg", expected), ("renamed", set[tuple[str, str]]())):
        root = plant(tmp_path / name, files)
        assert includes(scan_repo(root, options)) == found
        assert includes(scan_repo(root / "sub" / "..", options)) == found


def test_imports_are_counted_as_resolved_external_or_unresolved(tmp_path: Path) -> None:
    graph = scanned(tmp_path, {"a.py": "import os\nfrom . import gone\nfrom .b import x\nimport os\n", "b.py": ""})
    assert graph.imports == (ImportCount(language="python", resolved=1, external=1, unresolved=1),)


def test_unreadable_configuration_is_no_configuration(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "tsconfig.json": "[" * 50_000,
        "package.json": '"just a string"',
        "composer.json": "{",
        "a.ts": "import './b'\n",
        "b.ts": "",
    }
    assert includes(scanned(tmp_path, files)) == {("a.ts", "b.ts")}
