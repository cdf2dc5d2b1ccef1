/* The first bytes of any client: HTTP/1.1, or the preface of HTTP/2. */
#include "cost.h"

#include "wire/life_test.h"

FUZZ_INPUT()
{
    test_life_run(slice_of(data, size), false);
    return 0;
}
