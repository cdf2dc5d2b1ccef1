/* get */
#include "cmd/ctl/kv/kv.h"

#include "base/xalloc.h"
#include "client/call/prefix.h"
#include "cmd/ctl/explore/kv_view.h"
#include "cmd/ctl/kv/get_parts.h"

#include <strings.h>

/* -- the request -- */

struct slice kv_prefix_end(struct ctl *ctl, struct slice prefix)
{
    uint8_t *buffer = xalloc_check(arena_alloc(ctl->arena, prefix.len + 1), prefix.len);
    return prefix_end(prefix, buffer);
}

static int check_flags(struct ctl *ctl)
{
    const struct get_flags *given = ctl->flags;
    if (ctl->word_count == 0)
        return ctl_refuse(
            ctl, "get command needs one argument as key and an optional argument as range_end");
    if (given->prefix && given->from_key)
        return ctl_refuse(ctl,
                          "`--prefix` and `--from-key` cannot be set at the same time, choose one");
    if (given->keys_only && given->count_only)
        return ctl_refuse(
            ctl, "`--keys-only` and `--count-only` cannot be set at the same time, choose one");
    if (strcmp(given->consistency, "l") != 0 && strcmp(given->consistency, "s") != 0)
        return ctl_fail(ctl, CTL_BAD_FEATURE, "unknown consistency flag \"%s\"",
                        given->consistency);
    if (ctl->word_count > 1 && (given->prefix || given->from_key))
        return ctl_refuse(ctl, "too many arguments, only accept one argument when `--prefix` or "
                               "`--from-key` is set");
    return CTL_OK;
}

/* The place of a word in a list, upper or lower case; -1: none. */
static int place_of(const char *word, const char *const *list, int count)
{
    for (int i = 0; i < count; i++)
        if (strcasecmp(word, list[i]) == 0)
            return i;
    return -1;
}

static int set_order(struct ctl *ctl, struct pb_range_request *request)
{
    static const char *const orders[] = {"", "ASCEND", "DESCEND"};
    static const char *const targets[] = {"KEY", "VERSION", "CREATE", "MODIFY", "VALUE"};
    const struct get_flags *given = ctl->flags;
    int order = place_of(given->order, orders, COUNT_OF(orders));
    if (order < 0)
        return ctl_fail(ctl, CTL_BAD_FEATURE, "bad sort order %s", given->order);
    int target = *given->sort_by ? place_of(given->sort_by, targets, COUNT_OF(targets)) : 0;
    if (target < 0)
        return ctl_fail(ctl, CTL_BAD_FEATURE, "bad sort target %s", given->sort_by);
    /* Keys are ascending anyway, and a server would sort all of them first. */
    if (target == 0 && order == 1)
        order = 0;
    request->sort_order = order;
    request->sort_target = target;
    return CTL_OK;
}

static int set_limits(struct ctl *ctl, struct pb_range_request *request)
{
    const struct get_flags *given = ctl->flags;
    if (given->max_create_revision > 0 && given->min_create_revision > given->max_create_revision)
        return ctl_fail(ctl, CTL_BAD_FEATURE, "getMinCreateRev(=%lld) > getMaxCreateRev(=%lld)",
                        (long long)given->min_create_revision,
                        (long long)given->max_create_revision);
    if (given->max_mod_revision > 0 && given->min_mod_revision > given->max_mod_revision)
        return ctl_fail(ctl, CTL_BAD_FEATURE, "getMinModRev(=%lld) > getMaxModRev(=%lld)",
                        (long long)given->min_mod_revision, (long long)given->max_mod_revision);
#define POSITIVE(number) ((number) > 0 ? (number) : 0)
    request->min_create_revision = POSITIVE(given->min_create_revision);
    request->max_create_revision = POSITIVE(given->max_create_revision);
    request->min_mod_revision = POSITIVE(given->min_mod_revision);
    request->max_mod_revision = POSITIVE(given->max_mod_revision);
    request->revision = POSITIVE(given->revision);
#undef POSITIVE
    request->limit = given->limit;
    return CTL_OK;
}

static void set_range(struct ctl *ctl, struct pb_range_request *request)
{
    const struct get_flags *given = ctl->flags;
    request->key = ctl_word(ctl, 0);
    if (ctl->word_count > 1)
        request->range_end = ctl_word(ctl, 1);
    if (!given->prefix && !given->from_key)
        return;
    /* The API has no empty key: all keys begin at the zero byte. */
    if (request->key.len == 0)
        request->key = slice_of("", 1);
    /* An end of one zero byte stands for "no end". */
    if (given->from_key || request->key.ptr[0] == 0)
        request->range_end = slice_of("", 1);
    else
        request->range_end = kv_prefix_end(ctl, request->key);
}

int get_request(struct ctl *ctl, struct pb_range_request *ret_request)
{
    const struct get_flags *given = ctl->flags;
    *ret_request = (struct pb_range_request){
        .serializable = strcmp(given->consistency, "s") == 0,
        .keys_only = given->keys_only,
        .count_only = given->count_only,
    };
    int code = check_flags(ctl);
    if (code == CTL_OK)
        code = set_order(ctl, ret_request);
    if (code == CTL_OK)
        code = set_limits(ctl, ret_request);
    if (code == CTL_OK)
        set_range(ctl, ret_request);
    return code;
}

/* -- the answer -- */

static void show_simple(struct ctl *ctl, const void *response)
{
    const struct pb_range_response *range = response;
    /* txn shows its gets in the same way, and has no such flag. */
    bool hides_keys =
        ctl->command->run == get_run && ((const struct get_flags *)ctl->flags)->print_value_only;
    for (size_t i = 0; i < range->kvs_count; i++)
        ctl_simple_kv(ctl, !hides_keys, true, &range->kvs[i]);
}

static void show_fields(struct ctl *ctl, const void *response)
{
    const struct pb_range_response *range = response;
    ctl_field_header(ctl, range->header);
    for (size_t i = 0; i < range->kvs_count; i++)
        ctl_field_kv(ctl, "", &range->kvs[i]);
    ctl_field_bool(ctl, "More", range->more);
    ctl_field_int(ctl, "Count", range->count);
}

const struct ctl_shape ctl_range_shape = {
    .type = &pb_range_response_table,
    .simple = show_simple,
    .fields = show_fields,
};

/* etcdctl has no table of keys, and no lines of JSON. */
static const struct ctl_shape our_shape = {
    .type = &pb_range_response_table,
    .simple = show_simple,
    .fields = show_fields,
    .table = kv_view_range_table,
    .jsonl = kv_view_range_jsonl,
};

static int check_format(struct ctl *ctl)
{
    const struct get_flags *given = ctl->flags;
    if (given->count_only && ctl->globals.format != CTL_FIELDS)
        return ctl_refuse(ctl, "--count-only is only for `--write-out=fields`");
    if (given->print_value_only && ctl->globals.format != CTL_SIMPLE)
        return ctl_refuse(ctl, "print-value-only is only for `--write-out=simple`");
    return CTL_OK;
}

/* Nothing is a good answer, but on a terminal it looks like none. */
static void hint_nothing(const struct ctl *ctl, const struct pb_range_request *request)
{
    if (ctl->globals.format != CTL_SIMPLE || request->count_only)
        return;
    if (request->range_end.len)
        ctl_hint(ctl, "There is no such key.");
    else
        ctl_hint(ctl,
                 "There is no key \"%.*s\". With --prefix, get shows the keys that begin with it; "
                 "vigil tree shows all.",
                 SLICE_ARGS(request->key));
}

int get_run(struct ctl *ctl)
{
    const struct ctl_shape *shape = ctl_is_etcdctl(ctl) ? &ctl_range_shape : &our_shape;
    struct pb_range_request request;
    const void *response;
    int code = get_request(ctl, &request);
    /* A large range is read in pages, because one response could exceed the limit of the
     * message. */
    if (code == CTL_OK && get_in_parts(ctl, &request)) {
        bool any = true;
        code = check_format(ctl);
        if (code == CTL_OK)
            code = get_parts_run(ctl, &request, shape, &any);
        if (code == CTL_OK && !any)
            hint_nothing(ctl, &request);
        return code;
    }
    if (code == CTL_OK)
        code = ctl_call(ctl, METHOD_RANGE, &request, &response);
    if (code == CTL_OK)
        code = check_format(ctl);
    if (code != CTL_OK)
        return code;
    code = ctl_print(ctl, shape, response);
    if (code == CTL_OK && ((const struct pb_range_response *)response)->kvs_count == 0)
        hint_nothing(ctl, &request);
    return code;
}
