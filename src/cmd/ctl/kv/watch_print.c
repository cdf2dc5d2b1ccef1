#include "cmd/ctl/kv/watch_print.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "cmd/ctl/explore/change_view.h"
#include "cmd/ctl/kv/kv.h"
#include "cmd/ctl/print/go_json.h"

#include <inttypes.h>

static struct pb_key_value *copy_kv(struct pb_key_value *to, const vigil_kv *kv)
{
    if (!kv)
        return NULL;
    *to = (struct pb_key_value){
        .key = slice_of(kv->key.data, kv->key.size),
        .create_revision = kv->create_revision,
        .mod_revision = kv->mod_revision,
        .version = kv->version,
        .value = slice_of(kv->value.data, kv->value.size),
        .lease = kv->lease,
    };
    return to;
}

/* A batch as the message that it came from. */
struct message {
    struct pb_watch_response response;
    struct pb_response_header header;
    struct pb_event *events;     /* owned */
    struct pb_key_value *memory; /* owned: of all events */
};

static void message_fini(struct message *message)
{
    free(message->events);
    free(message->memory);
}

static void message_init(struct message *message, const vigil_watch_batch *batch)
{
    size_t count = batch->event_count;
    *message = (struct message){
        .events = xcalloc(count + 1, sizeof(*message->events)),
        .memory = xcalloc(2 * count + 1, sizeof(*message->memory)),
    };
    if (batch->header)
        message->header =
            (struct pb_response_header){batch->header->cluster_id, batch->header->member_id,
                                        batch->header->revision, batch->header->raft_term};
    for (size_t i = 0; i < count; i++)
        message->events[i] = (struct pb_event){
            .type = batch->events[i].type,
            .kv = copy_kv(&message->memory[2 * i], batch->events[i].kv),
            .prev_kv = copy_kv(&message->memory[2 * i + 1], batch->events[i].prev_kv),
        };
    message->response = (struct pb_watch_response){
        .header = &message->header,
        .events = message->events,
        .events_count = count,
        .compact_revision = batch->compact_revision,
        .canceled = batch->what == VIGIL_WATCH_ENDED,
    };
}

static const char *type_name(int32_t type)
{
    return type == VIGIL_DELETE ? "DELETE" : "PUT";
}

static void show_simple(struct ctl *ctl, const void *response)
{
    const struct pb_watch_response *watch = response;
    for (size_t i = 0; i < watch->events_count; i++) {
        fprintf(ctl->out, "%s\n", type_name(watch->events[i].type));
        if (watch->events[i].prev_kv)
            ctl_simple_kv(ctl, true, true, watch->events[i].prev_kv);
        ctl_simple_kv(ctl, true, true, watch->events[i].kv);
    }
}

static void show_fields(struct ctl *ctl, const void *response)
{
    const struct pb_watch_response *watch = response;
    ctl_field_header(ctl, watch->header);
    for (size_t i = 0; i < watch->events_count; i++) {
        fprintf(ctl->out, "\"Type\" : %s\n", type_name(watch->events[i].type));
        if (watch->events[i].prev_kv)
            ctl_field_kv(ctl, "Prev", watch->events[i].prev_kv);
        ctl_field_kv(ctl, "", watch->events[i].kv);
    }
}

/* The struct of etcd's client library, whose fields have the names of Go. */
static void show_json(struct ctl *ctl, const void *response)
{
    const struct pb_watch_response *watch = response;
    bool older = ctl->style == CTL_ETCDCTL_3_4;
    struct go_json json = {.to = ctl->out};
    fputs("{\"Header\":", ctl->out);
    go_json_message(&json, &pb_response_header_table, watch->header);
    /* Go encodes a slice without memory as null. etcdctl 3.4 writes an empty list here. */
    fputs(watch->events_count || older ? ",\"Events\":[" : ",\"Events\":null", ctl->out);
    for (size_t i = 0; i < watch->events_count; i++) {
        if (i)
            fputc(',', ctl->out);
        go_json_message(&json, &pb_event_table, &watch->events[i]);
    }
    fprintf(ctl->out, "%s,\"CompactRevision\":%" PRId64 ",\"Canceled\":%s,\"Created\":false%s}\n",
            watch->events_count || older ? "]" : "", watch->compact_revision,
            watch->canceled ? "true" : "false", older ? "" : ",\"CancelReason\":\"\"");
}

static const struct ctl_shape shape = {
    .type = &pb_watch_response_table,
    .simple = show_simple,
    .fields = show_fields,
    .json = show_json,
};

bool watch_shows_changes(const struct ctl *ctl)
{
    return !ctl_is_etcdctl(ctl) &&
           (ctl->globals.format == CTL_SIMPLE || ctl->globals.format == CTL_JSONL);
}

int watch_print(struct ctl *ctl, const vigil_watch_batch *batch)
{
    AUTO(message_fini) struct message message = {0};
    if (batch->what == VIGIL_WATCH_EVENTS && watch_shows_changes(ctl)) {
        struct change_view view;
        int64_t now_ns = clock_real_ns(clock_system());
        change_view_init(&view, ctl);
        for (size_t i = 0; i < batch->event_count; i++)
            change_view_show(&view, &batch->events[i], now_ns);
        return ferror(ctl->out) ? CTL_IO : CTL_OK;
    }
    message_init(&message, batch);
    if (batch->what == VIGIL_WATCH_ENDED)
        fprintf(stderr, "watch was canceled (%s)\n", ctl_error_text(ctl, batch->error));
    if (batch->what == VIGIL_WATCH_PROGRESS)
        fprintf(ctl->out, "progress notify: %" PRId64 "\n", batch->revision);
    return ctl_print(ctl, &shape, &message.response);
}
