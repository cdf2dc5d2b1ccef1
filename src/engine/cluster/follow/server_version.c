#include "engine/cluster/follow/server_version.h"

static bool take_number(struct slice *rest, uint64_t *ret_number)
{
    struct slice part = slice_cut(rest, '.');
    size_t digits = 0;
    while (digits < part.len && part.ptr[digits] >= '0' && part.ptr[digits] <= '9')
        digits++;
    return slice_decimal(slice_sub(part, 0, digits), ret_number);
}

bool server_version_has_progress(struct slice version)
{
    uint64_t major, minor, patch;
    if (!take_number(&version, &major) || !take_number(&version, &minor) ||
        !take_number(&version, &patch))
        return false;
    if (major != 3)
        return major > 3;
    if (minor == 4)
        return patch >= 31;
    return minor == 5 ? patch >= 8 : minor > 5;
}
