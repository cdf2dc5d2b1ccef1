/* endpoint status and hashkv, and defrag. */
#include "cmd/ctl/admin/endpoint.h"

#include "base/progress.h"
#include "cmd/ctl/admin/admin.h"
#include "cmd/ctl/print/go_json.h"
#include "codec/pb/rpc.pb.h"

#include <inttypes.h>

static const char *text_of(bool truth)
{
    return truth ? "true" : "false";
}

static bool is_3_4(const struct asked *asked)
{
    return asked->ctl->style == CTL_ETCDCTL_3_4;
}

/* Says which endpoints did not answer. Returns the last of them, or NULL. */
static const struct asked *report_errors(const struct asked_list *list, const char *what)
{
    const struct asked *last = NULL;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].response)
            continue;
        last = &list->items[i];
        fprintf(stderr, "Failed to get the %s of endpoint %s (%s)\n", what, last->endpoint,
                ask_error_text(last));
    }
    return last;
}

/* {"Endpoint":"…","Status":{…}} */
static void write_json(const struct asked *asked, const char *name, const struct pb_message *type,
                       const void *message)
{
    FILE *to = asked->ctl->out;
    struct go_json json = {.to = to};
    fputs("{\"Endpoint\":", to);
    go_json_text(to, slice_from_text(asked->endpoint));
    fprintf(to, ",\"%s\":", name);
    go_json_message(&json, type, message);
    fputc('}', to);
}

/* -- status -- */

static void ask_status(struct asked *asked)
{
    static const struct pb_status_request request;
    ask_call(asked, METHOD_STATUS, &request);
}

/* The errors of a member with something between them. */
static void join_errors(const struct pb_status_response *status, const char *between,
                        char ret_text[ENDPOINT_CELL_BYTES])
{
    size_t used = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < status->errors_count && used < ENDPOINT_CELL_BYTES; i++)
        used += (size_t)snprintf(ret_text + used, ENDPOINT_CELL_BYTES - used, "%s%.*s",
                                 i ? between : "", SLICE_ARGS(status->errors[i]));
    endpoint_tame(ret_text);
}

static uint64_t member_of(const void *response)
{
    const struct pb_response_header *header = admin_header(response);
    return header ? header->member_id : 0;
}

static void add_bytes(struct endpoint_row *row, int64_t bytes)
{
    char text[32];
    progress_bytes_text((uint64_t)bytes, text);
    endpoint_cell(row, "%s", text);
}

static void status_row(const struct asked *asked, struct endpoint_row *row)
{
    const struct pb_status_response *status = asked->response;
    char errors[ENDPOINT_CELL_BYTES];
    join_errors(status, ", ", errors);
    endpoint_cell(row, "%s", asked->endpoint);
    endpoint_cell(row, "%" PRIx64, member_of(status));
    endpoint_cell(row, "%.*s", SLICE_ARGS(status->version));
    if (!is_3_4(asked))
        endpoint_cell(row, "%.*s", SLICE_ARGS(status->storage_version));
    add_bytes(row, status->db_size);
    if (!is_3_4(asked)) {
        /* A server may send anything. */
        bool is_known = status->db_size > 0 && status->db_size_in_use >= 0 &&
                        status->db_size_in_use <= INT64_MAX / 100;
        int64_t used = is_known ? status->db_size_in_use * 100 / status->db_size : 100;
        add_bytes(row, status->db_size_in_use);
        endpoint_cell(row, "%" PRId64 "%%", 100 - used);
        add_bytes(row, status->db_size_quota);
    }
    endpoint_cell(row, "%s", text_of(status->leader == member_of(status)));
    endpoint_cell(row, "%s", text_of(status->is_learner));
    endpoint_cell(row, "%" PRIu64, status->raft_term);
    endpoint_cell(row, "%" PRIu64, status->raft_index);
    endpoint_cell(row, "%" PRIu64, status->raft_applied_index);
    endpoint_cell(row, "%s", errors);
    if (!is_3_4(asked)) {
        const struct pb_downgrade_info *info = status->downgrade_info;
        struct slice target = info ? info->target_version : SLICE_LITERAL("");
        endpoint_cell(row, "%.*s", SLICE_ARGS(target));
        endpoint_cell(row, "%s", text_of(info && info->enabled));
    }
}

static void status_fields(const struct asked *asked)
{
    struct ctl *ctl = asked->ctl;
    const struct pb_status_response *status = asked->response;
    char errors[ENDPOINT_CELL_BYTES];
    join_errors(status, " ", errors);
    ctl_field_header(ctl, status->header);
    ctl_field_text(ctl, "Version", status->version);
    if (is_3_4(asked)) {
        ctl_field_int(ctl, "DBSize", status->db_size);
        ctl_field_uint(ctl, "Leader", status->leader);
        ctl_field_bool(ctl, "IsLearner", status->is_learner);
        ctl_field_uint(ctl, "RaftIndex", status->raft_index);
        ctl_field_uint(ctl, "RaftTerm", status->raft_term);
    } else {
        ctl_field_text(ctl, "StorageVersion", status->storage_version);
        ctl_field_int(ctl, "DBSize", status->db_size);
        ctl_field_int(ctl, "DBSizeInUse", status->db_size_in_use);
        ctl_field_int(ctl, "DBSizeQuota", status->db_size_quota);
        ctl_field_uint(ctl, "Leader", status->leader);
        ctl_field_bool(ctl, "IsLearner", status->is_learner);
        ctl_field_uint(ctl, "RaftIndex", status->raft_index);
    }
    ctl_field_uint(ctl, "RaftAppliedIndex", status->raft_applied_index);
    fprintf(ctl->out, "\"Errors\" : [%s]\n", errors);
    ctl_field_text(ctl, "Endpoint", slice_from_text(asked->endpoint));
    if (!is_3_4(asked)) {
        ctl_field_text(ctl, "DowngradeTargetVersion",
                       status->downgrade_info ? status->downgrade_info->target_version
                                              : SLICE_EMPTY);
        ctl_field_bool(ctl, "DowngradeEnabled",
                       status->downgrade_info && status->downgrade_info->enabled);
    }
    fputc('\n', ctl->out);
}

/* 3.4 does not know the fields that were added later, so it drops them. */
static void status_json(const struct asked *asked)
{
    struct pb_status_response status = *(const struct pb_status_response *)asked->response;
    if (is_3_4(asked)) {
        status.storage_version = SLICE_EMPTY;
        status.db_size_quota = 0;
        status.downgrade_info = NULL;
    }
    write_json(asked, "Status", &pb_status_response_table, &status);
}

static const char *const status_heads[] = {
    "endpoint",
    "ID",
    "version",
    "storage version",
    "db size",
    "in use",
    "percentage not in use",
    "quota",
    "is leader",
    "is learner",
    "raft term",
    "raft index",
    "raft applied index",
    "errors",
    "downgrade target version",
    "downgrade enabled",
};
static const char *const status_heads_3_4[] = {
    "endpoint",           "ID",         "version",   "db size",
    "is leader",          "is learner", "raft term", "raft index",
    "raft applied index", "errors",
};

int admin_endpoint_status(struct ctl *ctl)
{
    const struct endpoint_flags *flags = ctl->flags;
    bool old = ctl->style == CTL_ETCDCTL_3_4;
    struct endpoint_shape shape = {
        .heads = old ? status_heads_3_4 : status_heads,
        .head_count = old ? COUNT_OF(status_heads_3_4) : COUNT_OF(status_heads),
        .row = status_row,
        .fields = status_fields,
        .json = status_json,
    };
    AUTO(ask_free) struct asked_list list = {0};
    int code = ask_all(ctl, flags->cluster, ask_status, &list);
    if (code != CTL_OK)
        return code;
    /* The endpoints that answered are printed even if others did not. */
    const struct asked *failed = report_errors(&list, "status");
    code = endpoint_print(ctl, &shape, &list);
    return code == CTL_OK && failed ? CTL_ERROR : code;
}

/* -- hashkv -- */

static void ask_hash(struct asked *asked)
{
    const struct endpoint_flags *flags = asked->ctl->flags;
    struct pb_hash_kv_request request = {.revision = flags->revision};
    ask_call(asked, METHOD_HASH_KV, &request);
}

static void hash_row(const struct asked *asked, struct endpoint_row *row)
{
    const struct pb_hash_kv_response *hash = asked->response;
    endpoint_cell(row, "%s", asked->endpoint);
    endpoint_cell(row, "%" PRIu32, hash->hash);
    if (!is_3_4(asked))
        endpoint_cell(row, "%" PRId64, hash->hash_revision);
}

static void hash_fields(const struct asked *asked)
{
    struct ctl *ctl = asked->ctl;
    const struct pb_hash_kv_response *hash = asked->response;
    ctl_field_header(ctl, hash->header);
    ctl_field_text(ctl, "Endpoint", slice_from_text(asked->endpoint));
    ctl_field_uint(ctl, "Hash", hash->hash);
    if (!is_3_4(asked))
        ctl_field_int(ctl, "HashRevision", hash->hash_revision);
    fputc('\n', ctl->out);
}

static void hash_json(const struct asked *asked)
{
    struct pb_hash_kv_response hash = *(const struct pb_hash_kv_response *)asked->response;
    if (is_3_4(asked))
        hash.hash_revision = 0;
    write_json(asked, "HashKV", &pb_hash_kv_response_table, &hash);
}

int admin_endpoint_hashkv(struct ctl *ctl)
{
    static const char *const heads[] = {"endpoint", "hash", "hash_revision"};
    const struct endpoint_flags *flags = ctl->flags;
    struct endpoint_shape shape = {
        .heads = heads,
        .head_count = ctl->style == CTL_ETCDCTL_3_4 ? 2 : 3,
        .row = hash_row,
        .fields = hash_fields,
        .json = hash_json,
    };
    AUTO(ask_free) struct asked_list list = {0};
    int code = ask_all(ctl, flags->cluster, ask_hash, &list);
    if (code != CTL_OK)
        return code;
    const struct asked *failed = report_errors(&list, "hash");
    code = endpoint_print(ctl, &shape, &list);
    return code == CTL_OK && failed ? ctl_fail_with(ctl, &failed->error) : code;
}
