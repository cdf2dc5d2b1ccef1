#include "wire/grpc/timeout.h"

static int64_t unit_ns(uint8_t unit)
{
    switch (unit) {
    case 'H':
        return INT64_C(3600000000000);
    case 'M':
        return INT64_C(60000000000);
    case 'S':
        return INT64_C(1000000000);
    case 'm':
        return 1000000;
    case 'u':
        return 1000;
    case 'n':
        return 1;
    default:
        return 0;
    }
}

enum grpc_timeout_fault grpc_timeout_parse(struct slice text, int64_t *ret_ns)
{
    if (text.len < 2)
        return GRPC_TIMEOUT_SHORT;
    if (text.len > 9)
        return GRPC_TIMEOUT_LONG;
    int64_t unit = unit_ns(text.ptr[text.len - 1]);
    if (unit == 0)
        return GRPC_TIMEOUT_UNIT;
    int64_t n = 0;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return GRPC_TIMEOUT_DIGITS;
        n = n * 10 + (text.ptr[i] - '0');
    }
    int64_t ns;
    *ret_ns = __builtin_mul_overflow(n, unit, &ns) ? INT64_MAX : ns;
    return GRPC_TIMEOUT_FINE;
}
