#include "cmd/names/apiserver_flags.h"

#include "base/xalloc.h"

#include <stdlib.h>
#include <string.h>

static const struct apiserver_flag list[] = {
#include "cmd/names/apiserver_flags.inc"
    {APISERVER_ACCEPT_IGNORED, APISERVER_BOOL, 0},
};

_Static_assert(COUNT_OF(list) <= APISERVER_FLAGS_MAX, "the array of values is too small");

const struct apiserver_flag *apiserver_flag_at(size_t place)
{
    return place < COUNT_OF(list) ? &list[place] : NULL;
}

static bool same_name(const char *name, struct slice given)
{
    if (strlen(name) != given.len)
        return false;
    for (size_t i = 0; i < given.len; i++)
        if (name[i] != (given.ptr[i] == '_' ? '-' : (char)given.ptr[i]))
            return false;
    return true;
}

static const struct apiserver_flag *find(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(list); i++)
        if (same_name(list[i].name, name))
            return &list[i];
    return NULL;
}

static const struct apiserver_flag *find_letter(char letter)
{
    for (size_t i = 0; i < COUNT_OF(list); i++)
        if (list[i].letter == letter)
            return &list[i];
    return NULL;
}

const char *apiserver_flags_get(const struct apiserver_flags *flags, const char *name)
{
    const struct apiserver_flag *flag = find(slice_from_text(name));
    assert(flag);
    return flags->values[flag - list];
}

/* As strconv.ParseBool. */
static bool is_bool(const char *text)
{
    static const char *const words[] = {"1", "t", "T", "TRUE",  "true",  "True",
                                        "0", "f", "F", "FALSE", "false", "False"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(words[i], text) == 0)
            return true;
    return false;
}

static const char *join(struct arena *arena, const char *first, const char *second)
{
    size_t bytes = strlen(first) + strlen(second) + 2;
    char *joined = xalloc_check(arena_alloc(arena, bytes), bytes);
    snprintf(joined, bytes, "%s,%s", first, second);
    return joined;
}

static enum status set(struct apiserver_flags *flags, struct arena *arena,
                       const struct apiserver_flag *flag, const char *value, struct error *error)
{
    const char **place = &flags->values[flag - list];
    if (flag->kind == APISERVER_BOOL && !is_bool(value))
        return error_set(error, ST_INVALID,
                         "invalid argument \"%.100s\" for \"--%s\" flag: strconv.ParseBool: "
                         "parsing \"%.100s\": invalid syntax",
                         value, flag->name, value);
    *place = flag->kind == APISERVER_LIST && *place ? join(arena, *place, value) : value;
    return ST_OK;
}

/* The arguments that are not parsed yet. */
struct rest {
    int count;
    char *const *args;
};

static const char *take(struct rest *rest)
{
    assert(rest->count > 0);
    rest->count--;
    return *rest->args++;
}

static bool needs_value(const struct apiserver_flag *flag)
{
    return flag->kind == APISERVER_VALUE || flag->kind == APISERVER_LIST;
}

/* text is what follows the two dashes. */
static enum status parse_long(struct apiserver_flags *flags, struct arena *arena, const char *text,
                              struct rest *rest, struct error *error)
{
    size_t len = strcspn(text, "=");
    const struct apiserver_flag *flag = find(slice_of(text, len));
    if (len == 0 || text[0] == '-')
        return error_set(error, ST_INVALID, "bad flag syntax: --%.200s", text);
    if (!flag)
        return error_set(error, ST_INVALID, "unknown flag: --%.*s", (int)size_min(len, 200), text);
    if (text[len])
        return set(flags, arena, flag, text + len + 1, error);
    if (!needs_value(flag))
        return set(flags, arena, flag, "true", error);
    if (!rest->count)
        return error_set(error, ST_INVALID, "flag needs an argument: --%s", flag->name);
    return set(flags, arena, flag, take(rest), error);
}

/* "-v2", "-v=2", "-v 2" and "-hv2"; text is what follows the dash. */
static enum status parse_letters(struct apiserver_flags *flags, struct arena *arena,
                                 const char *text, struct rest *rest, struct error *error)
{
    for (const char *at = text; *at; at++) {
        const struct apiserver_flag *flag = find_letter(*at);
        if (!flag)
            return error_set(error, ST_INVALID, "unknown shorthand flag: '%c' in -%.200s", *at,
                             text);
        if (at[1] == '=')
            return set(flags, arena, flag, at + 2, error);
        if (needs_value(flag) && at[1])
            return set(flags, arena, flag, at + 1, error);
        if (needs_value(flag) && !rest->count)
            return error_set(error, ST_INVALID, "flag needs an argument: '%c' in -%.200s", *at,
                             text);
        TRY(set(flags, arena, flag, needs_value(flag) ? take(rest) : "true", error));
    }
    return ST_OK;
}

/* kube-apiserver lists the words; the first one is enough to find the mistake. */
static enum status refuse_word(const char *word, struct error *error)
{
    return error_set(error, ST_INVALID,
                     "\"kube-apiserver\" does not take any arguments, got [\"%.200s\"]", word);
}

enum status apiserver_flags_parse(struct apiserver_flags *flags, struct arena *arena, int count,
                                  char *const *args, struct error *error)
{
    struct rest rest = {count, args};
    *flags = (struct apiserver_flags){0};
    while (rest.count) {
        const char *arg = take(&rest);
        if (arg[0] != '-' || !arg[1])
            return refuse_word(arg, error);
        if (strcmp(arg, "--") == 0)
            return rest.count ? refuse_word(take(&rest), error) : ST_OK;
        TRY(arg[1] == '-' ? parse_long(flags, arena, arg + 2, &rest, error)
                          : parse_letters(flags, arena, arg + 1, &rest, error));
    }
    return ST_OK;
}
