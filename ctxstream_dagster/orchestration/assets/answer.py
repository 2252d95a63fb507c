"""`answer`: the sentence that code built from the tally, kept as JSON beside it."""

import json

import dagster as dg

from ctxstream_dagster.orchestration.boundary import failures
from ctxstream_dagster.orchestration.checks import segment_url
from ctxstream_dagster.orchestration.orphans import claim_run
from ctxstream_dagster.orchestration.results import ANSWER_FACTS, last_good
from ctxstream_dagster.orchestration.spec import SweepSpec
from ctxstream_dagster.report.summary import answer_inline, answer_markdown
from ctxstream_dagster.storage import write_bytes


def build_answer(spec: SweepSpec) -> dg.AssetsDefinition:
    """Return the asset that states the answer with its coverage."""

    @dg.asset(
        key=spec.key("answer"),
        deps=[spec.key("tally")],
        group_name=spec.name,
        description=f"{spec.answer.value.capitalize()} of {spec.question.extract}",
        kinds={"json"},
        owners=list(spec.owners),
        tags=dict(spec.tags),
        automation_condition=dg.AutomationCondition.eager(),
    )
    def answer(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        claim_run(context, spec.run_tags())
        with failures():
            reduction, facts = last_good(spec.store())
            stated = json.loads(facts["reduction"])
            made_of = {name: facts.get(name) for name in ANSWER_FACTS}
            document = json.dumps({**stated, "sweep": spec.name, **made_of}, indent=2, ensure_ascii=False)
            write_bytes(spec.store().answer, (document + "\n").encode("utf-8"))
        return dg.MaterializeResult(
            metadata={
                "answer": dg.MetadataValue.md(answer_inline(reduction)),
                "chart": dg.MetadataValue.md(answer_markdown(reduction, segment_url=segment_url(spec))),
                "certain": stated["certain"],
                "caveat": stated["caveat"] or "none",
                "coverage": stated["coverage"]["sentence"],
                "evidence": f"ctxstream report {spec.name} --open",
                "file": dg.MetadataValue.path(str(spec.store().answer)),
            },
            data_version=dg.DataVersion(facts["inputs"]),
        )

    return answer
