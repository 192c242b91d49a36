"""Every tuned number of the exact search, each with its reason.

Work is counted in *looks*: one look is one candidate examined in the hash table of a bank, and takes some
nanoseconds. Compiled code reads these numbers as constants; an edit of this file compiles it anew.
"""

# --- The bank of subprograms ---------------------------------------------------------------------------

#: Subprograms of a bank that is filled for every data set in about a millisecond, and of one that is filled
#: once per search, in about a tenth of a second and 57 MB.
SMALL, LARGE = 1 << 14, 1 << 20
#: The simplest subprograms keep their values at all points, one in 16 of a small bank and one in 128 of a
#: large one. Values of the others are computed from their operands when they are needed, which saves most of
#: the memory.
KEPT_OF_SMALL, KEPT_OF_LARGE = 16, 128
#: Integers and powers up to these count as one node, however many tokens they take: textbook laws are full of
#: them, and beyond 5 they are rare.
LARGEST_INTEGER, LARGEST_POWER = 5, 5
#: Levels of the enumeration; among programs of more nodes even a library of one operator has few new
#: functions.
MOST_NODES = 9
#: Points at which functions are compared while they are enumerated: enough that two that agree at all of
#: them to seven digits are one function.
N_REFERENCE = 16
#: Programs enumerated between two moments at which Ctrl-C is heard, about a tenth of a second.
ENUMERATED_AT_ONCE = 200_000

# --- A data set's points, and the values there ---------------------------------------------------------

#: Rows at which programs are compared: eight values to seven digits each leave no room for chance. A data set
#: of fewer rows is not solved.
N_POINTS = 8
#: Rows from which the points are chosen and at which a law is checked; more would cost time and tell no more.
MOST_ROWS = 64
#: Low bits of a value's 64 that the hash leaves out, so that values which agree to six digits meet in it.
DROPPED_BITS = 32
#: Units of the last bit by which rounding may move a value: one this close to the edge of its hash cell is
#: searched for in the neighbouring cell too.
ROUNDING_BITS = 1 << 20
#: Relative distance at the first point within which a subprogram of a small and of a large bank is a
#: candidate: among more subprograms more are near by chance.
NEAR_IN_SMALL, NEAR_IN_LARGE = 1e-5, 1e-9
#: Subprograms of one value at the first point that are found by it, the simplest. Where columns have few
#: values, or tiny ones, thousands share one, and comparing them all would take minutes.
MOST_ALIKE = 16
#: Two values are the same within this share of their own size plus that share of the largest target value.
CLOSE, CLOSE_BY_LARGEST = 1e-7, 1e-10
#: Smallest ratio of two summands that a join accepts. Below it the smaller one vanishes in the rounding of
#: the larger, and any subprogram would match.
SMALLEST_SUMMAND = 1e-7
#: Mean squared error of a law, as a share of the mean square of y, that rounding explains: the same function
#: written otherwise rounds otherwise.
LAW_ERROR = 1e-8

# --- Joins ---------------------------------------------------------------------------------------------

#: Subprograms tried as the first of two in a join under every open node of many programs, which must take
#: microseconds, and in the one for the whole law, which may take more.
MOST_FIRST, MOST_FIRST_OF_LAW = 128, 512
#: First subprograms whose candidates are gathered before any is evaluated, and candidates kept of them: the
#: buffer stays in the processor's cache.
FIRSTS_AT_ONCE, MOST_CANDIDATES = 128, 4096
#: Looks that evaluating one candidate at all points costs, in time.
EVALUATION = 100
#: Most looks of one join, and of one join of a stage. Joins on common data need far fewer; where all
#: subprograms have the same few values, these limits end the search.
LOOKS_OF_JOIN, LOOKS_OF_JOIN_IN_STAGE = 500_000, 20_000_000
#: Operands of sine and cosine are searched for up to these absolute values: everywhere, and in stages whose
#: operand is almost all of the program and leaves time for more periods.
ANGLE, FAR_ANGLE, FARTHEST_ANGLE = 20.0, 60.0, 200.0
#: Room for the operands that give one sine within `FARTHEST_ANGLE`: two in each of 64 periods, and more.
MOST_OPERANDS = 160

# --- Stages --------------------------------------------------------------------------------------------

#: Looks for which a stage plans its joins, which take about half a second.
LOOKS_OF_STAGE = 60_000_000
#: Looks after which a stage ends even if not all its planned joins are done, because evaluations and
#: subprograms of equal values may cost more than planned.
MOST_LOOKS_OF_STAGE = 180_000_000
#: Looks between two questions whether the search should stop, about a tenth of a second.
LOOKS_AT_ONCE = 10_000_000
#: Looks that inverting one context costs, in time.
INVERSION = 20
#: Fewest subprograms tried as the first of two under contexts: with fewer, stages of many contexts would find
#: sums and products of columns alone.
FEWEST_FIRSTS = 64

# --- Repair --------------------------------------------------------------------------------------------

#: Repaired programs of one call: more would crowd out the population they are added to.
MOST_REPAIRED = 200
#: Most looks of all repairs of one call, which take a second or two. Repairs on common data need far fewer.
LOOKS_OF_REPAIR = 200_000_000

# --- Polynomials ---------------------------------------------------------------------------------------

#: Rows that polynomials are fitted to: where these have many columns, few rows do not tell their terms apart.
MOST_ROWS_OF_POLYNOMIALS = 400
#: Looks that a search for polynomials and their quotients costs, in time: some milliseconds.
LOOKS_OF_POLYNOMIALS = 1_000_000
