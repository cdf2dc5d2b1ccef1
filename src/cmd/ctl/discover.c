#include "cmd/ctl/discover.h"

#include "base/random.h"
#include "base/xalloc.h"
#include "client/names/resolver.h"
#include "cmd/ctl/session.h"

/* Looks up the targets of one service, in the order in which to try them. */
static enum status look_up(const struct ctl_globals *globals, bool secure,
                           struct srv_target *targets, size_t *ret_count, struct error *error)
{
    static uint8_t answer[SRV_ANSWER_BYTES];
    char name[SRV_HOST_BYTES];
    const char *suffix = globals->discovery_srv_name;
    int name_len = snprintf(name, sizeof(name), "_etcd-client%s%s%s._tcp.%s", secure ? "-ssl" : "",
                            *suffix ? "-" : "", suffix, globals->discovery_srv);
    if (name_len >= (int)sizeof(name))
        return error_set(error, ST_INVALID, "the name %.40s… is too long", name);
    size_t len;
    struct error reason = {0};
    enum status status = resolver_system.srv(resolver_system.ctx, name, answer, &len, &reason);
    if (status == ST_OK)
        status = srv_parse(slice_of(answer, len), targets, ret_count);
    if (status != ST_OK) {
        char server[RESOLVER_SERVER_BYTES];
        bool is_missing = !reason.text[0] || status == ST_NOT_FOUND;
        resolver_system_server(!is_missing, server);
        return error_set(error, status, "lookup %s%s%s: %s", name, *server ? " on " : "", server,
                         reason.text[0] ? reason.text : "no such host");
    }
    struct random random;
    random_init(&random, random_seed_system());
    srv_order(targets, *ret_count, &random);
    return ST_OK;
}

static void add(struct buf *all, const struct ctl_globals *globals, bool secure,
                const struct srv_target *target)
{
    if (!secure && !globals->insecure_discovery) {
        fprintf(stderr, "ignoring discovered insecure endpoint \"http://%s.:%u\"\n", target->host,
                target->port);
        return;
    }
    enum status status = buf_append_format(all, "%s%s://%s:%u", all->len ? "," : "",
                                           secure ? "https" : "http", target->host, target->port);
    xalloc_check(status == ST_OK ? all->ptr : NULL, sizeof(*target));
}

int ctl_discover(struct ctl *ctl)
{
    struct ctl_globals *globals = &ctl->globals;
    struct error errors[2] = {0};
    AUTO(buf_fini) struct buf all = {0};
    if (!*globals->discovery_srv)
        return CTL_OK;
    struct srv_target *targets = xcalloc(SRV_TARGETS_MAX, sizeof(*targets));
    for (int plain = 0; plain < 2; plain++) {
        size_t count = 0;
        if (look_up(globals, !plain, targets, &count, &errors[plain]) != ST_OK)
            continue;
        for (size_t i = 0; i < count; i++)
            add(&all, globals, !plain, &targets[i]);
    }
    free(targets);
    if (errors[0].text[0] && errors[1].text[0])
        return ctl_fail(ctl, CTL_ERROR, "dns lookup errors: %s and %s", errors[0].text,
                        errors[1].text);
    struct slice copy;
    if (all.len == 0)
        return CTL_OK;
    enum status status = buf_append(&all, slice_of("", 1));
    if (status == ST_OK)
        status = arena_dup(ctl->arena, buf_slice(&all), &copy);
    globals->discovered =
        xalloc_check(status == ST_OK ? (void *)(uintptr_t)copy.ptr : NULL, all.len);
    return CTL_OK;
}
