"""Names for the arrays that travel between the rooms.

Nothing else belongs here: a reader of any signature should know at once what is inside.
"""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
