"""All tuned numbers of the exact search, with their reasons.

The unit of work is one candidate examined in the hash table of a bank, which takes some nanoseconds; names
with CANDIDATES count it. Compiled code reads these numbers as constants and is compiled again after an edit.
"""

import math

# --- The bank of subprograms ---------------------------------------------------------------------------

#: Subprograms of the small bank, which is filled for every data set in about a millisecond.
SMALL = 1 << 14
#: Subprograms of the large bank, which is filled once per search, in about a tenth of a second and 57 MB.
LARGE = 1 << 20
#: Subprograms whose values at all points are stored, as a multiple of the square root of a bank's size. They
#: are the simplest; the values of the others are computed from their operands when needed.
KEPT_PER_ROOT = 8
#: Largest integer, and largest power, that counts as one node, however many tokens it takes; textbook laws
#: rarely have others.
LARGEST_NUMBER = 5
#: Most nodes of an enumerated program. Programs of more nodes add few new functions.
MOST_NODES = 9
#: Points of the enumeration. Two functions that agree at all of them to seven digits are treated as one.
N_REFERENCE = 16
#: Programs enumerated before Ctrl-C is checked again, about a tenth of a second.
ENUMERATED_AT_ONCE = 200_000

# --- A data set's points, and the values there ---------------------------------------------------------

#: Rows at which programs are compared, to seven digits each. Data sets of fewer rows are not solved.
N_POINTS = 8
#: Most rows from which the points are chosen and at which a law is checked.
MOST_ROWS = 64
#: Low bits of the 64 of a value that the hash ignores, so that values which agree to six digits have one key.
DROPPED_BITS = 32
#: Rounding error of a value in units of its last bit, within which neighbouring keys are looked up, too.
ROUNDING_BITS = 1 << 20
#: Relative distance at the first point within which a subprogram of the small bank is a candidate.
NEAR_IN_SMALL = 1e-5
#: The same for the large bank, in which more subprograms are near by chance.
NEAR_IN_LARGE = 1e-9
#: Most subprograms with the same hash key at the first point that can be found; they are the simplest. Where
#: columns have few or tiny values, thousands share one, and comparing them all would take minutes.
MOST_ALIKE = 16
#: Largest distance of two equal values, as a share of their size. A summand that is smaller than this share
#: of the other one vanishes in it.
CLOSE = 1e-7
#: Distance that is allowed in addition, as a share of the largest target value.
CLOSE_BY_LARGEST = 1e-10
#: Largest mean squared error of a law, as a share of the mean square of y, which is due to rounding.
LAW_ERROR = 1e-8

# --- Joins ---------------------------------------------------------------------------------------------

#: Most subprograms tried as the first of two in the join for the whole law.
MOST_FIRST_OF_LAW = 512
#: First subprograms whose candidates are collected at once, so that these stay in the processor's cache. The
#: joins of a repair, each of which must take microseconds, try no more.
FIRSTS_AT_ONCE = 128
#: Most candidates in this buffer.
MOST_CANDIDATES = 4096
#: Time to evaluate one candidate at all points, in candidates examined.
EVALUATION = 100
#: Most candidates examined in one join. Ordinary data need far fewer.
CANDIDATES_OF_JOIN = 500_000
#: The same for one join of a stage.
CANDIDATES_OF_JOIN_IN_STAGE = 20_000_000
#: Largest absolute operand, in radians, of a sine or cosine that is searched for.
ANGLE = 20.0
#: The same in stages whose operand is most of the program, so that there is time for more periods.
FAR_ANGLE = 60.0
#: The same in stages whose operand is nearly all of the program.
FARTHEST_ANGLE = 200.0
#: Most operands with the same sine: two in each period.
MOST_OPERANDS = 2 * math.ceil(FARTHEST_ANGLE / math.pi)

# --- Stages --------------------------------------------------------------------------------------------

#: Candidates examined for which a stage plans its joins, which takes about half a second.
CANDIDATES_OF_STAGE = 60_000_000
#: Candidates examined after which a stage ends, since equal values may cost more than planned; all repairs
#: of one call end there, too.
MOST_CANDIDATES_OF_STAGE = 180_000_000
#: Candidates examined before `should_stop` is called again, about a tenth of a second.
CANDIDATES_AT_ONCE = 10_000_000
#: Time to invert one context, in candidates examined.
INVERSION = 20
#: Fewest subprograms tried as the first of two under contexts. With fewer, long stages would find little.
FEWEST_FIRSTS = 64

# --- Polynomials ---------------------------------------------------------------------------------------

#: Most rows to which polynomials are fitted. With many columns, few rows do not determine the terms.
MOST_ROWS_OF_POLYNOMIALS = 400
#: Time of a search for polynomials and their quotients, some milliseconds, in candidates examined.
CANDIDATES_OF_POLYNOMIALS = 1_000_000
