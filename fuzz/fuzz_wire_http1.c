/* The first bytes of any client: HTTP/1.1, or a preface. */
#include "wire/life_test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    test_life_run(slice_of(data, size), false);
    return 0;
}
