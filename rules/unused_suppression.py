"""CKP901."""

from ckptlint.rule import Severity, SourceRule


class UnusedSuppression(SourceRule):
    """A suppression that silences nothing.

    ## What it does
    Reports `# ckptlint: ignore[…]` comments whose line has no such finding, that name a rule which does not exist, or that name
    none. A rule that the settings switch off does not make its suppressions unused.

    ## Why it matters
    Such a comment hides the finding on the day it comes back, and tells its readers of an accepted risk which is not there.

    ## Example
    ```yaml title="train.yaml"
    model_name_or_path: meta-llama/Llama-3.1-8B
    stage: sft
    do_train: true
    output_dir: saves/llama3
    save_steps: 500  # ckptlint: ignore[interval-too-long]
    ```

    ## Use instead
    ```yaml title="train.yaml"
    model_name_or_path: meta-llama/Llama-3.1-8B
    stage: sft
    do_train: true
    output_dir: saves/llama3
    save_steps: 500
    ```

    ## Fix safety
    Safe: only the comment changes. Names that are still needed stay.

    ## References
    - `# ckptlint: ignore[rule, …]` holds for its line, or for the next one where it stands alone
    """

    code = "CKP901"
    name = "unused-suppression"
    severity = Severity.WARNING
    fix = "safe"
