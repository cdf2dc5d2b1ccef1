/* del */
#include "cmd/ctl/kv/kv.h"

#include <unistd.h>

enum { WARNING_SECONDS = 2 };

/* etcdctl 3.7 gives two seconds to reconsider. */
static void warn_of_range(struct ctl *ctl)
{
    const struct del_flags *given = ctl->flags;
    if (given->range || ctl->style == CTL_ETCDCTL_3_4)
        return;
    fputs("Warning: Keys between ", stderr);
    ctl_write_quoted(stderr, ctl_word(ctl, 0));
    fputs(" and ", stderr);
    ctl_write_quoted(stderr, ctl_word(ctl, 1));
    fputs(" will be deleted. Please interrupt the command within next 2 seconds to cancel. You can "
          "provide `--range` flag to avoid the delay.\n",
          stderr);
    sleep(WARNING_SECONDS);
}

static int check_flags(struct ctl *ctl)
{
    const struct del_flags *given = ctl->flags;
    if (ctl->word_count == 0 || ctl->word_count > 2)
        return ctl_refuse(
            ctl, "del command needs one argument as key and an optional argument as range_end");
    if (given->prefix && given->from_key)
        return ctl_refuse(ctl,
                          "`--prefix` and `--from-key` cannot be set at the same time, choose one");
    if (ctl->word_count > 1 && (given->prefix || given->from_key))
        return ctl_refuse(ctl, "too many arguments, only accept one argument when `--prefix` or "
                               "`--from-key` is set");
    return CTL_OK;
}

int del_request(struct ctl *ctl, struct pb_delete_range_request *ret_request)
{
    const struct del_flags *given = ctl->flags;
    int code = check_flags(ctl);
    if (code != CTL_OK)
        return code;
    struct slice key = ctl_word(ctl, 0);
    struct slice end = {0};
    if (ctl->word_count > 1) {
        end = ctl_word(ctl, 1);
        warn_of_range(ctl);
    }
    bool all = given->from_key || (given->prefix && key.len == 0);
    if (key.len == 0 && all)
        key = slice_of("", 1);
    if (all)
        end = slice_of("", 1);
    else if (given->prefix)
        end = kv_prefix_end(ctl, key);
    *ret_request =
        (struct pb_delete_range_request){.key = key, .range_end = end, .prev_kv = given->prev_kv};
    return CTL_OK;
}

static void show_simple(struct ctl *ctl, const void *response)
{
    const struct pb_delete_range_response *removal = response;
    fprintf(ctl->out, "%lld\n", (long long)removal->deleted);
    for (size_t i = 0; i < removal->prev_kvs_count; i++)
        ctl_simple_kv(ctl, true, true, &removal->prev_kvs[i]);
}

static void show_fields(struct ctl *ctl, const void *response)
{
    const struct pb_delete_range_response *removal = response;
    ctl_field_header(ctl, removal->header);
    ctl_field_int(ctl, "Deleted", removal->deleted);
    for (size_t i = 0; i < removal->prev_kvs_count; i++)
        ctl_field_kv(ctl, "Prev", &removal->prev_kvs[i]);
}

const struct ctl_shape ctl_del_shape = {
    .type = &pb_delete_range_response_table,
    .simple = show_simple,
    .fields = show_fields,
};

int del_run(struct ctl *ctl)
{
    struct pb_delete_range_request request;
    const void *response;
    int code = del_request(ctl, &request);
    if (code == CTL_OK)
        code = ctl_call(ctl, METHOD_DELETE_RANGE, &request, &response);
    return code == CTL_OK ? ctl_print(ctl, &ctl_del_shape, response) : code;
}
