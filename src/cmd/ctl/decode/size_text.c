#include "cmd/ctl/decode/size_text.h"

#include "base/macros.h"

#include <inttypes.h>
#include <stdio.h>

const char *size_text(uint64_t bytes, char to[SIZE_TEXT_BYTES])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes / 1024;
    size_t unit = 0;
    if (bytes < 1024) {
        snprintf(to, SIZE_TEXT_BYTES, "%" PRIu64 " B", bytes);
        return to;
    }
    for (; size >= 1024 && unit + 1 < COUNT_OF(units); unit++)
        size /= 1024;
    snprintf(to, SIZE_TEXT_BYTES, "%.1f %s", size, units[unit]);
    return to;
}
