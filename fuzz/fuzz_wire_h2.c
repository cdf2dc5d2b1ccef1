/* The frames of a gRPC and HTTP client after its preface, against services and routes of every
 * kind. */
#include "cost.h"

#include "wire/life_test.h"

FUZZ_INPUT()
{
    test_life_run(slice_of(data, size), true);
    return 0;
}
