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

size_t grpc_timeout_write(int64_t ns, uint8_t text[GRPC_TIMEOUT_BYTES])
{
    static const uint8_t units[] = {'n', 'u', 'm', 'S', 'M', 'H'};
    enum { VALUE_MAX = 99999999 };
    int64_t value = ns > 0 ? ns : 0;
    size_t at = 0;
    while (value > VALUE_MAX && at + 1 < COUNT_OF(units)) {
        int64_t unit = unit_ns(units[++at]);
        value = ns / unit + (ns % unit != 0);
    }
    uint8_t digits[8];
    size_t count = 0;
    do {
        digits[count++] = (uint8_t)('0' + value % 10);
        value /= 10;
    } while (value);
    for (size_t i = 0; i < count; i++)
        text[i] = digits[count - 1 - i];
    text[count] = units[at];
    return count + 1;
}
