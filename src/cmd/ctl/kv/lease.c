/* The commands lease grant, revoke, timetolive, list and keep-alive, and compaction. */
#include "cmd/ctl/kv/kv.h"

#include "base/clock.h"
#include "cmd/ctl/print/go_json.h"

#include <inttypes.h>

static int read_lease(struct ctl *ctl, int64_t *ret_id)
{
    char reason[160];
    if (kv_parse_lease(ctl->words[0], ret_id, reason, sizeof(reason)))
        return CTL_OK;
    return ctl_refuse(ctl, "bad lease ID arg (%s), expecting ID in Hex", reason);
}

/* As ctl_call; before the text of an error comes what failed. */
static int call(struct ctl *ctl, enum client_method_id method, const void *request,
                const char *failed, enum ctl_exit exit_code, const void **ret_response)
{
    int code;
    vigil_error error;
    vigil_client *client = ctl_client(ctl, &code);
    if (!client)
        return code;
    if (ctl_call_at(ctl, client, method, request, ret_response, &error) == VIGIL_OK)
        return CTL_OK;
    const char *text = ctl_error_text(ctl, &error);
    return failed && ctl_is_etcdctl(ctl) ? ctl_fail(ctl, exit_code, "%s (%s)", failed, text)
                                         : ctl_fail(ctl, exit_code, "%s", text);
}

/* -- JSON of the structs of etcd's client library, which embed the header -- */

static void begin_json(struct ctl *ctl, const struct pb_response_header *header)
{
    struct go_json json = {.to = ctl->out};
    fputc('{', ctl->out);
    if (header && go_json_fields(&json, &pb_response_header_table, header))
        fputc(',', ctl->out);
}

/* -- compaction -- */

int compaction_run(struct ctl *ctl)
{
    const struct compaction_flags *given = ctl->flags;
    struct pb_compaction_request request = {.physical = given->physical};
    char reason[160];
    const void *response;
    if (!kv_parse_number(ctl->words[0], &request.revision, reason, sizeof(reason)))
        return ctl_fail(ctl, CTL_ERROR, "%s", reason);
    int code = ctl_call(ctl, METHOD_COMPACT, &request, &response);
    if (code == CTL_OK)
        fprintf(ctl->out, "compacted revision %" PRId64 "\n", request.revision);
    return code;
}

/* -- grant -- */

static void grant_simple(struct ctl *ctl, const void *response)
{
    const struct pb_lease_grant_response *grant = response;
    fprintf(ctl->out, "lease %016" PRIx64 " granted with TTL(%" PRId64 "s)\n", grant->id,
            grant->ttl);
}

static void grant_fields(struct ctl *ctl, const void *response)
{
    const struct pb_lease_grant_response *grant = response;
    ctl_field_header(ctl, grant->header);
    ctl_field_lease(ctl, "ID", grant->id);
    ctl_field_int(ctl, "TTL", grant->ttl);
}

static void grant_json(struct ctl *ctl, const void *response)
{
    const struct pb_lease_grant_response *grant = response;
    begin_json(ctl, grant->header);
    fprintf(ctl->out, "\"ID\":%" PRId64 ",\"TTL\":%" PRId64 ",\"Error\":", grant->id, grant->ttl);
    go_json_text(ctl->out, grant->error);
    fputs("}\n", ctl->out);
}

int lease_grant_run(struct ctl *ctl)
{
    static const struct ctl_shape shape = {
        .type = &pb_lease_grant_response_table,
        .simple = grant_simple,
        .fields = grant_fields,
        .json = grant_json,
        .header_only = true,
    };
    struct pb_lease_grant_request request = {0};
    char reason[160];
    const void *response;
    if (!kv_parse_number(ctl->words[0], &request.ttl, reason, sizeof(reason)))
        return ctl_refuse(ctl, "bad TTL (%s)", reason);
    int code =
        call(ctl, METHOD_LEASE_GRANT, &request, "failed to grant lease", CTL_ERROR, &response);
    return code == CTL_OK ? ctl_print(ctl, &shape, response) : code;
}

/* -- revoke -- */

static void revoke_simple(struct ctl *ctl, const void *response)
{
    (void)response;
    int64_t id = 0;
    char reason[160];
    (void)kv_parse_lease(ctl->words[0], &id, reason, sizeof(reason));
    fprintf(ctl->out, "lease %016" PRIx64 " revoked\n", id);
}

static void revoke_fields(struct ctl *ctl, const void *response)
{
    const struct pb_lease_revoke_response *revoke = response;
    ctl_field_header(ctl, revoke->header);
}

int lease_revoke_run(struct ctl *ctl)
{
    static const struct ctl_shape shape = {
        .type = &pb_lease_revoke_response_table,
        .simple = revoke_simple,
        .fields = revoke_fields,
        .no_protobuf = "clientv3.LeaseRevokeResponse",
    };
    struct pb_lease_revoke_request request = {0};
    const void *response;
    int code = read_lease(ctl, &request.id);
    if (code == CTL_OK)
        code = call(ctl, METHOD_LEASE_REVOKE, &request, "failed to revoke lease", CTL_ERROR,
                    &response);
    return code == CTL_OK ? ctl_print(ctl, &shape, response) : code;
}

/* -- timetolive -- */

static void timetolive_simple(struct ctl *ctl, const void *response)
{
    const struct pb_lease_time_to_live_response *lease = response;
    const struct timetolive_flags *given = ctl->flags;
    /* etcd answers so for a lease that does not exist. */
    if (lease->granted_ttl == 0 && lease->ttl == -1) {
        fprintf(ctl->out, "lease %016" PRIx64 " already expired\n", lease->id);
        return;
    }
    fprintf(ctl->out,
            "lease %016" PRIx64 " granted with TTL(%" PRId64 "s), remaining(%" PRId64 "s)",
            lease->id, lease->granted_ttl, lease->ttl);
    if (given->keys) {
        fputs(", attached keys([", ctl->out);
        for (size_t i = 0; i < lease->keys_count; i++) {
            if (i)
                fputc(' ', ctl->out);
            fwrite(lease->keys[i].ptr, 1, lease->keys[i].len, ctl->out);
        }
        fputs("])", ctl->out);
    }
    fputc('\n', ctl->out);
}

static void timetolive_fields(struct ctl *ctl, const void *response)
{
    const struct pb_lease_time_to_live_response *lease = response;
    ctl_field_header(ctl, lease->header);
    ctl_field_lease(ctl, "ID", lease->id);
    ctl_field_int(ctl, "TTL", lease->ttl);
    ctl_field_int(ctl, "GrantedTTL", lease->granted_ttl);
    for (size_t i = 0; i < lease->keys_count; i++)
        ctl_field_text(ctl, "Key", lease->keys[i]);
}

static void timetolive_json(struct ctl *ctl, const void *response)
{
    const struct pb_lease_time_to_live_response *lease = response;
    begin_json(ctl, lease->header);
    fprintf(ctl->out,
            "\"id\":%" PRId64 ",\"ttl\":%" PRId64 ",\"granted-ttl\":%" PRId64 ",\"keys\":%s",
            lease->id, lease->ttl, lease->granted_ttl, lease->keys_count ? "[" : "null");
    for (size_t i = 0; i < lease->keys_count; i++) {
        if (i)
            fputc(',', ctl->out);
        go_json_bytes(ctl->out, lease->keys[i]);
    }
    fputs(lease->keys_count ? "]}\n" : "}\n", ctl->out);
}

int lease_timetolive_run(struct ctl *ctl)
{
    static const struct ctl_shape shape = {
        .type = &pb_lease_time_to_live_response_table,
        .simple = timetolive_simple,
        .fields = timetolive_fields,
        .json = timetolive_json,
        .header_only = true,
    };
    const struct timetolive_flags *given = ctl->flags;
    struct pb_lease_time_to_live_request request = {.keys = given->keys};
    const void *response;
    int code = read_lease(ctl, &request.id);
    if (code == CTL_OK)
        code = call(ctl, METHOD_LEASE_TIME_TO_LIVE, &request, NULL, CTL_BAD_CONNECTION, &response);
    return code == CTL_OK ? ctl_print(ctl, &shape, response) : code;
}

/* -- list -- */

static void list_simple(struct ctl *ctl, const void *response)
{
    const struct pb_lease_leases_response *list = response;
    fprintf(ctl->out, "found %zu leases\n", list->leases_count);
    for (size_t i = 0; i < list->leases_count; i++)
        fprintf(ctl->out, "%016" PRIx64 "\n", list->leases[i].id);
}

static void list_fields(struct ctl *ctl, const void *response)
{
    const struct pb_lease_leases_response *list = response;
    ctl_field_header(ctl, list->header);
    for (size_t i = 0; i < list->leases_count; i++)
        ctl_field_lease(ctl, "ID", list->leases[i].id);
}

static void list_json(struct ctl *ctl, const void *response)
{
    const struct pb_lease_leases_response *list = response;
    begin_json(ctl, list->header);
    fputs("\"leases\":[", ctl->out);
    for (size_t i = 0; i < list->leases_count; i++)
        fprintf(ctl->out, "%s{\"id\":%" PRId64 "}", i ? "," : "", list->leases[i].id);
    fputs("]}\n", ctl->out);
}

int lease_list_run(struct ctl *ctl)
{
    static const struct ctl_shape shape = {
        .type = &pb_lease_leases_response_table,
        .simple = list_simple,
        .fields = list_fields,
        .json = list_json,
        .header_only = true,
    };
    struct pb_lease_leases_request request = {0};
    const void *response;
    int code = call(ctl, METHOD_LEASE_LEASES, &request, NULL, CTL_BAD_CONNECTION, &response);
    return code == CTL_OK ? ctl_print(ctl, &shape, response) : code;
}

/* -- keep-alive -- */

static void keep_alive_simple(struct ctl *ctl, const void *response)
{
    const struct pb_lease_keep_alive_response *lease = response;
    fprintf(ctl->out, "lease %016" PRIx64 " keepalived with TTL(%" PRId64 ")\n", lease->id,
            lease->ttl);
}

static void keep_alive_fields(struct ctl *ctl, const void *response)
{
    const struct pb_lease_keep_alive_response *lease = response;
    ctl_field_header(ctl, lease->header);
    ctl_field_lease(ctl, "ID", lease->id);
    ctl_field_int(ctl, "TTL", lease->ttl);
}

static void keep_alive_json(struct ctl *ctl, const void *response)
{
    const struct pb_lease_keep_alive_response *lease = response;
    begin_json(ctl, lease->header);
    fprintf(ctl->out, "\"ID\":%" PRId64 ",\"TTL\":%" PRId64 "}\n", lease->id, lease->ttl);
}

static const struct ctl_shape keep_alive_shape = {
    .type = &pb_lease_keep_alive_response_table,
    .simple = keep_alive_simple,
    .fields = keep_alive_fields,
    .json = keep_alive_json,
    .header_only = true,
};

/* A stream of one request and its answer. Renewing twice does no harm, so it may be repeated. */

static int renew(struct ctl *ctl, int64_t id, const struct pb_lease_keep_alive_response **ret_lease)
{
    struct pb_lease_keep_alive_request request = {.id = id};
    const void *response;
    int code = call(ctl, METHOD_LEASE_KEEP_ALIVE, &request, NULL, CTL_BAD_CONNECTION, &response);
    if (code == CTL_OK)
        *ret_lease = response;
    return code;
}

static int renew_once(struct ctl *ctl, int64_t id)
{
    const struct pb_lease_keep_alive_response *lease;
    int code = renew(ctl, id, &lease);
    if (code != CTL_OK)
        return code;
    if (lease->ttl <= 0)
        return ctl_fail(ctl, CTL_BAD_CONNECTION, "etcdserver: requested lease not found");
    return ctl_print(ctl, &keep_alive_shape, lease);
}

int lease_keep_alive_run(struct ctl *ctl)
{
    const struct keep_alive_flags *given = ctl->flags;
    const struct pb_lease_keep_alive_response *lease;
    int64_t id;
    int code = read_lease(ctl, &id);
    if (code != CTL_OK)
        return code;
    if (given->once)
        return renew_once(ctl, id);
    while ((code = renew(ctl, id, &lease)) == CTL_OK && lease->ttl > 0) {
        code = ctl_print(ctl, &keep_alive_shape, lease);
        if (code != CTL_OK)
            return code;
        /* The client answers the pings of its server while it waits. */
        int64_t pause_ns = lease->ttl * NS_PER_S / 3;
        int64_t end_ns = clock_mono_ns(clock_system()) + pause_ns;
        for (int64_t left_ns = pause_ns; left_ns > 0;
             left_ns = end_ns - clock_mono_ns(clock_system()))
            ctl_wait(ctl->client, (int)(left_ns / NS_PER_MS) + 1);
        /* The loop may run for days, and must not keep each answer. */
        ctl_drop_answers(ctl);
    }
    if (code == CTL_OK && ctl->globals.format == CTL_SIMPLE)
        fprintf(ctl->out, "lease %016" PRIx64 " expired or revoked.\n", id);
    return code;
}
