#include "cel/library/texts.h"

static bool are_strings(const struct cel_value *args)
{
    return args[0].kind == CEL_STRING && args[1].kind == CEL_STRING;
}

struct cel_value cel_contains(struct cel_work *work, const struct cel_value *args)
{
    if (!are_strings(args))
        return CEL_NO_OVERLOAD;
    work->steps_left -= (int64_t)((args[0].length + args[1].length) / 64);
    /* An empty text may have no bytes to point at. */
    return cel_of_bool(args[1].length == 0 ||
                       (args[0].length >= args[1].length &&
                        memmem(args[0].bytes, args[0].length, args[1].bytes, args[1].length)));
}

struct cel_value cel_starts_with(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    if (!are_strings(args))
        return CEL_NO_OVERLOAD;
    return cel_of_bool(slice_has_prefix(cel_text(args[0]), cel_text(args[1])));
}

struct cel_value cel_ends_with(struct cel_work *work, const struct cel_value *args)
{
    (void)work;
    if (!are_strings(args))
        return CEL_NO_OVERLOAD;
    struct slice text = cel_text(args[0]), end = cel_text(args[1]);
    return cel_of_bool(text.len >= end.len &&
                       slice_equal(slice_sub(text, text.len - end.len, end.len), end));
}
