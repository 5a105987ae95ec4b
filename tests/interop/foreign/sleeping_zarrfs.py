"""zarrfs with the program of `sleeping_translator`; takes the arguments of ``zarrfs mount``."""

import sys
from pathlib import Path

from zarrfs.cli.main import main
from zarrfs.store.foreign import kept

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parent))
    kept._PROGRAM = "sleeping_translator"
    sys.argv[1:1] = ["mount"]
    main()
