"""CKP900."""

from ckptlint.rule import Severity, SourceRule


class SyntaxErrorRule(SourceRule):
    """A file that cannot be read as what it is.

    ## What it does
    Reports a training configuration whose text is not valid YAML, or not UTF-8, at the place where reading stops and in the
    parser's own words. Files that mention no framework are only looked at when they are named on the command line.

    ## Why it matters
    The launcher reads the same text with the same parser and stops there as well: after a change that broke the file, the job
    that the platform starts again never comes back. And nothing else can be said about a file that cannot be read.

    ## Example
    ```yaml title="train.yaml"
    model_name_or_path: meta-llama/Llama-3.1-8B
    stage: sft
    do_train: true
    output_dir: "saves/llama3
    save_steps: 500
    ```

    ## Use instead
    ```yaml title="train.yaml"
    model_name_or_path: meta-llama/Llama-3.1-8B
    stage: sft
    do_train: true
    output_dir: "saves/llama3"
    save_steps: 500
    ```

    ## References
    - [YAML 1.1](https://yaml.org/spec/1.1/), the version that PyYAML and OmegaConf read
    """

    code = "CKP900"
    name = "syntax-error"
    severity = Severity.ERROR
