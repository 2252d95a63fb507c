"""The command line's exit statuses, beside 0; docs/commands.md says what each means."""

EXIT_WITHHELD = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
