/* Frames of a gRPC and HTTP client after its preface, against services and routes of every kind. */
#include "wire/life_test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    test_life_run(slice_of(data, size), true);
    return 0;
}
