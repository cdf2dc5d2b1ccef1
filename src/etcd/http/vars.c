#include "base/buf.h"
#include "codec/json/writer.h"
#include "etcd/http/http.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { COMMAND_BYTES_MAX = 64 * 1024 };

static void write_command(struct json_writer *w)
{
    char text[COMMAND_BYTES_MAX];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
    if (fd >= 0)
        close(fd);
    json_begin_array(w);
    for (size_t at = 0; n > 0 && at < (size_t)n;) {
        size_t len = strnlen(text + at, (size_t)n - at);
        json_string(w, slice_of(text + at, len));
        at += len + 1;
    }
    json_end_array(w);
}

/* The fields of Go's runtime.MemStats that have a meaning without Go's runtime. */
static void write_memory(struct json_writer *w)
{
    struct mallinfo2 info = mallinfo2();
    uint64_t used = info.uordblks + info.hblkhd, all = info.arena + info.hblkhd;
    json_begin_object(w);
    json_member_u64(w, "Alloc", used);
    json_member_u64(w, "Sys", all);
    json_member_u64(w, "HeapAlloc", used);
    json_member_u64(w, "HeapSys", all);
    json_member_u64(w, "HeapIdle", info.fordblks);
    json_member_u64(w, "HeapInuse", used);
    json_member_u64(w, "NumGC", 0);
    json_member_bool(w, "EnableGC", false);
    json_end_object(w);
}

static void put_id(struct json_writer *w, const char *name, uint64_t id)
{
    char text[24];
    snprintf(text, sizeof(text), "%llx", (unsigned long long)id);
    json_member_text(w, name, text);
}

/* The raft status of a cluster with one member. */
static void write_raft(struct json_writer *w, const struct etcd_api *api)
{
    struct engine_status status;
    engine_status_get(api->shard, &status);
    struct engine_identity now = engine_identity_get(api->engine); /* a cluster's may change */
    uint64_t id = now.member_id;
    char text[24];
    snprintf(text, sizeof(text), "%llx", (unsigned long long)id);
    json_begin_object(w);
    put_id(w, "id", id);
    json_member_u64(w, "term", now.raft_term);
    put_id(w, "vote", id);
    json_member_u64(w, "commit", status.raft_index);
    put_id(w, "lead", id);
    json_member_text(w, "raftState", "StateLeader");
    json_member_u64(w, "applied", status.applied_index);
    json_member_object(w, "progress");
    json_member_object(w, text);
    json_member_u64(w, "match", status.raft_index);
    json_member_u64(w, "next", status.raft_index + 1);
    json_member_text(w, "state", "StateReplicate");
    json_end_object(w);
    json_end_object(w);
    json_member_text(w, "leadtransferee", "0");
    json_end_object(w);
}

/* One variable on its own line, as expvar does. */
static enum status add_variable(struct buf *body, const char *name, struct json_writer *w)
{
    TRY(buf_append_format(body, "%s\"%s\": ", body->len > 2 ? ",\n" : "", name));
    json_writer_init(w, body);
    return ST_OK;
}

static enum status write_vars(struct buf *body, const struct etcd_api *api)
{
    struct json_writer w;
    struct rlimit files = {0};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    TRY(buf_append_text(body, "{\n"));
    TRY(add_variable(body, "cmdline", &w));
    write_command(&w);
    TRY(json_writer_finish(&w));
    TRY(add_variable(body, "file_descriptor_limit", &w));
    json_u64(&w, files.rlim_cur);
    TRY(json_writer_finish(&w));
    TRY(add_variable(body, "memstats", &w));
    write_memory(&w);
    TRY(json_writer_finish(&w));
    TRY(add_variable(body, "raft.status", &w));
    write_raft(&w, api);
    TRY(json_writer_finish(&w));
    return buf_append_text(body, "\n}\n");
}

void http_vars(struct http_exchange *x, void *api, const struct http_request *request)
{
    AUTO(buf_fini) struct buf body = {0};
    if (!http_is_get(x, request))
        return;
    if (write_vars(&body, api) == ST_OK)
        http_respond(x, 200, SLICE_LITERAL("application/json; charset=utf-8"), buf_slice(&body));
    else
        http_abort(x);
}
