"""``python -m ckptlint``."""

from ckptlint.cli import main

if __name__ == "__main__":
    main()
