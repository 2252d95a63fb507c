"""`answer`: the sentence that code built from the tally, kept as JSON beside it."""

import json

import dagster as dg

from ctxstream_dagster.orchestration.boundary import failures
from ctxstream_dagster.orchestration.checks import segment_url
from ctxstream_dagster.orchestration.orphans import claim_run
from ctxstream_dagster.orchestration.results import ANSWER_FACTS, last_good
from ctxstream_dagster.orchestration.shown import place
from ctxstream_dagster.orchestration.spec import SweepSpec
from ctxstream_dagster.reduction.answer import Answer
from ctxstream_dagster.report.summary import answer_inline, answer_markdown
from ctxstream_dagster.storage import write_bytes

_CONCLUDES = {
    Answer.LEAST: "The key with the smallest sum",
    Answer.MOST: "The key with the largest sum",
    Answer.TOTAL: "The sum of all values",
    Answer.LIST: "Every key with its sum",
}


def build_answer(spec: SweepSpec) -> dg.AssetsDefinition:
    """Return the asset that states the answer with its coverage."""

    @dg.asset(
        key=spec.key("answer"),
        deps=[spec.key("tally")],
        group_name=spec.name,
        description=_description(spec),
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
        by_model = spec.question.mode == "counts"
        margin = reduction.statement.margin
        return dg.MaterializeResult(
            metadata={
                "answer": dg.MetadataValue.md(answer_inline(reduction, model_counted=by_model)),
                "chart": dg.MetadataValue.md(
                    answer_markdown(reduction, segment_url=segment_url(spec), model_counted=by_model)
                ),
                "value": float(reduction.statement.value),
                # A sum or a list has no next key to be away from, and 0 would look like a tie.
                **({} if margin is None else {"margin": float(margin)}),
                "coverage_share": reduction.coverage.share,
                "certain": stated["certain"],
                "caveat": stated["caveat"] or "none",
                "coverage": stated["coverage"]["sentence"],
                "evidence": f"ctxstream report {spec.name} --open",
                "file": place(spec, spec.store().answer),
            },
            data_version=dg.DataVersion(facts["inputs"]),
        )

    return answer


def _description(spec: SweepSpec) -> str:
    concludes = (
        f"{_CONCLUDES[spec.answer]}, stated by code from the tally. The model was asked: {spec.question.extract}"
    )
    return f"{spec.description}\n\n{concludes}" if spec.description else concludes
