#include "cmd/complete/ask.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "cmd/ctl/decode/safe_text.h"
#include "cmd/ctl/profile/profile.h"
#include "cmd/ctl/session.h"

#include <limits.h>
#include <unistd.h>

/* ctl_run calls a command without a context; a process completes one word. */
static struct complete_asked asked;

static struct slice slice_of_bytes(vigil_bytes bytes)
{
    return slice_of(bytes.data, bytes.size);
}

static bool offer(struct slice text, const char *help, size_t *count)
{
    if (*count >= COMPLETE_MAX)
        return false;
    /* Nothing is offered that a shell would take for a flag, or that would change the terminal. */
    if (text.len > 0 && text.ptr[0] != '-' && safe_text_is(text, SAFE_ONE_LINE) &&
        slice_has_prefix(text, slice_from_text(asked.current))) {
        asked.offer(asked.ctx, text, help);
        ++*count;
    }
    return true;
}

/* -- Keys -- */

/* The candidates for one beginning. */
struct keys {
    vigil_client *client;
    struct slice prefix;
    struct buf from, end; /* bounds of the next page */
    struct buf found[COMPLETE_MAX];
    size_t count;
    int64_t deadline_ns;
};

static void keys_fini(struct keys *keys)
{
    buf_fini(&keys->from);
    buf_fini(&keys->end);
    for (size_t i = 0; i < keys->count; i++)
        buf_fini(&keys->found[i]);
    keys->count = 0;
}

static void set(struct buf *buf, struct slice bytes)
{
    buf->len = 0;
    enum status status = buf_append(buf, bytes);
    xalloc_check(status == ST_OK ? buf : NULL, bytes.len);
}

/* Every key from the prefix on that has it. */
static void set_range(struct keys *keys)
{
    if (keys->prefix.len == 0) {
        set(&keys->from, slice_of("\0", 1));
        set(&keys->end, slice_of("\0", 1));
        return;
    }
    void *end = xmalloc(keys->prefix.len);
    vigil_bytes bytes = {.data = keys->prefix.ptr, .size = keys->prefix.len};
    set(&keys->from, keys->prefix);
    set(&keys->end, slice_of_bytes(vigil_prefix_end(bytes, end)));
    free(end);
}

/* The key, or the part of it up to the next slash; the next one is searched after that. */
static void take_key(struct keys *keys, struct slice key)
{
    const uint8_t *rest = key.ptr + keys->prefix.len;
    const uint8_t *slash = memchr(rest, '/', key.len - keys->prefix.len);
    struct slice part = slash ? slice_of(key.ptr, (size_t)(slash - key.ptr) + 1) : key;
    set(&keys->found[keys->count++], part);
    set(&keys->from, part);
    if (slash)
        keys->from.ptr[keys->from.len - 1]++; /* behind everything below it */
    else
        xalloc_check(buf_append(&keys->from, slice_of("\0", 1)) == ST_OK ? keys : NULL, 1);
}

/* False: that was the last page. */
static bool read_page(struct keys *keys)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = (vigil_bytes){.data = keys->from.ptr, .size = keys->from.len};
    request.range_end = (vigil_bytes){.data = keys->end.ptr, .size = keys->end.len};
    request.limit = COMPLETE_PAGE;
    request.keys_only = request.serializable = 1;
    vigil_call *call = vigil_range(keys->client, &request);
    bool more = vigil_call_run(call) == VIGIL_OK && vigil_range_result(call)->more;
    const vigil_range_response *page = vigil_range_result(call);
    if (page) {
        for (size_t i = 0; i < page->kv_count && keys->count < COMPLETE_MAX; i++) {
            struct slice key = slice_of_bytes(page->kvs[i].key);
            if (slice_compare(key, buf_slice(&keys->from)) >= 0 && key.len >= keys->prefix.len)
                take_key(keys, key);
        }
    }
    vigil_call_free(call);
    return more;
}

static bool is_late(const struct keys *keys)
{
    return clock_mono_ns(clock_system()) >= keys->deadline_ns;
}

/* A single part that ends with a slash leaves nothing to choose: what is below it is offered. */
static bool descend(struct keys *keys, struct buf *prefix)
{
    struct slice only = keys->count == 1 ? buf_slice(&keys->found[0]) : slice_of(NULL, 0);
    if (only.len <= keys->prefix.len || only.ptr[only.len - 1] != '/')
        return false;
    set(prefix, only);
    return true;
}

static void ask_keys(vigil_client *client)
{
    AUTO(buf_fini) struct buf prefix = {0};
    AUTO(keys_fini) struct keys keys = {.client = client};
    keys.deadline_ns = clock_mono_ns(clock_system()) + COMPLETE_MS * NS_PER_MS;
    set(&prefix, slice_from_text(asked.current));
    for (int depth = 0; depth < COMPLETE_DEPTH_MAX && !is_late(&keys); depth++) {
        keys_fini(&keys);
        memset(keys.found, 0, sizeof(keys.found));
        keys.prefix = buf_slice(&prefix);
        set_range(&keys);
        bool more = true;
        for (int page = 0; page < COMPLETE_PAGES_MAX && more; page++)
            more = !is_late(&keys) && keys.count < COMPLETE_MAX && read_page(&keys);
        if (!descend(&keys, &prefix))
            break;
    }
    size_t offered = 0;
    for (size_t i = 0; i < keys.count; i++)
        offer(buf_slice(&keys.found[i]), NULL, &offered);
}

/* -- Lists -- */

static void offer_id(uint64_t id, struct slice help, size_t *count)
{
    char text[20], name[64];
    int len = snprintf(text, sizeof(text), "%016llx", (unsigned long long)id);
    snprintf(name, sizeof(name), "%.*s", SLICE_ARGS(help));
    offer(slice_of(text, (size_t)len), safe_text_is(help, SAFE_ONE_LINE) ? name : NULL, count);
}

static void offer_leases(const vigil_call *call)
{
    const vigil_lease_list_response *list = vigil_lease_list_result(call);
    size_t count = 0;
    for (size_t i = 0; list && i < list->lease_count; i++)
        offer_id((uint64_t)list->leases[i].id, slice_of(NULL, 0), &count);
}

static void offer_names(const vigil_call *call)
{
    const vigil_names_response *list = vigil_names_result(call);
    size_t count = 0;
    for (size_t i = 0; list && i < list->name_count; i++)
        offer(slice_of_bytes(list->names[i]), NULL, &count);
}

static void offer_members(const vigil_call *call)
{
    const vigil_members_response *list = vigil_members_result(call);
    size_t count = 0;
    for (size_t i = 0; list && i < list->member_count; i++)
        offer_id(list->members[i].id, slice_of_bytes(list->members[i].name), &count);
}

static void ask_list(vigil_call *call, void (*offer_all)(const vigil_call *call))
{
    if (vigil_call_run(call) == VIGIL_OK)
        offer_all(call);
    vigil_call_free(call);
}

static void ask_client(vigil_client *client)
{
    switch (asked.kind) {
    case COMPLETE_KEYS:
        return ask_keys(client);
    case COMPLETE_LEASES:
        return ask_list(vigil_lease_list(client), offer_leases);
    case COMPLETE_USERS:
        return ask_list(vigil_user_list(client), offer_names);
    case COMPLETE_ROLES:
        return ask_list(vigil_role_list(client), offer_names);
    case COMPLETE_MEMBERS:
        return ask_list(vigil_member_list(client, 0), offer_members);
    case COMPLETE_PROFILES:
        return;
    }
}

static void ask_profiles(struct ctl *ctl)
{
    struct profiles profiles;
    struct error error;
    const char *path = profiles_path(ctl->arena);
    size_t count = 0;
    if (!path || profiles_read(ctl->arena, path, &profiles, &error) != ST_OK)
        return;
    for (size_t i = 0; i < profiles.count; i++)
        offer(slice_from_text(profiles.all[i].name), NULL, &count);
}

/* -- The command -- */

static void limit(int64_t *ns)
{
    if (*ns <= 0 || *ns > COMPLETE_MS * NS_PER_MS)
        *ns = COMPLETE_MS * NS_PER_MS;
}

static int run(struct ctl *ctl)
{
    struct ctl_globals *globals = &ctl->globals;
    if (asked.kind == COMPLETE_PROFILES) {
        ask_profiles(ctl);
        return CTL_OK;
    }
    /* The user would have to type the password, for which a completion cannot wait. */
    if (*globals->user && !*globals->token && !*globals->password && !strchr(globals->user, ':'))
        return CTL_OK;
    limit(&globals->command_timeout_ns);
    limit(&globals->dial_timeout_ns);
    globals->max_receive_bytes = COMPLETE_BYTES_MAX;
    globals->format = CTL_SIMPLE;
    globals->debug = false;
    int code;
    vigil_client *client = ctl_client(ctl, &code);
    if (client)
        ask_client(client);
    return CTL_OK;
}

void complete_ask(const struct complete_asked *what, const struct ctl_found *found, int count,
                  char **args)
{
    struct ctl_command command = *found->command;
    struct ctl_found same = *found;
    command.words_min = 0;
    command.words_max = UINT_MAX;
    command.run = run;
    same.command = &command;
    asked = *what;
    alarm(COMPLETE_MS / 1000 + 2); /* names may be looked up without a limit of ours */
    ctl_run(&same, count, args, what->style);
    alarm(0);
}
