#include "kube/jobs/follower/furnish.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "codec/json/tree.h"
#include "engine/forward.h"
#include "kube/jobs/follower/agenda.h"
#include "kube/jobs/follower/follower.h"
#include "kube/jobs/follower/own_request.h"
#include "kube/jobs/start.h"
#include "kube/types/object/object.h"

#include <inttypes.h>

#define NAMESPACES "/registry/namespaces/"

enum {
    READ_BYTES_MAX = 4 << 20,   /* memory of the engine for one read */
    OBJECT_BYTES_MAX = 4 << 20, /* and for the tree of a config map */
    OTHER_BYTES_MAX = 16 << 10, /* a config map with so much besides its data is another one */
    RETRY_MAX_S = 60,           /* the pause after many failures */
};

static const struct {
    const char *plural, *prefix, *name;
    bool has_data;       /* the certificate */
    const char *account; /* that Kubernetes' controller uses */
} objects[] = {
    {"serviceaccounts", "/registry/serviceaccounts/", "default", false,
     "service-account-controller"},
    {"configmaps", "/registry/configmaps/", "kube-root-ca.crt", true, "root-ca-cert-publisher"},
};

enum step { READ_NAMESPACE, LOOK, WRITE };

struct furnisher {
    struct kube_follower follower;
    struct kube_agenda agenda;     /* namespaces to look at */
    struct kube_agenda_item *item; /* the one that is looked at; NULL: none */
    enum step step;
    size_t object;    /* which of its objects */
    int64_t revision; /* WRITE: of the object that has to be changed; 0: it is missing */
    struct kube_own_request request;
};

static struct furnisher *furnisher_of(struct kube_job *job)
{
    return CONTAINER_OF(kube_follower_of(job), struct furnisher, follower);
}

static struct slice root_ca(struct furnisher *f)
{
    return f->follower.job.api->config->start->root_ca;
}

/* -- Events -- */

static struct slice behind(struct slice key, const char *prefix)
{
    struct slice start = slice_from_text(prefix);
    return slice_has_prefix(key, start) ? slice_sub(key, start.len, key.len - start.len)
                                        : SLICE_EMPTY;
}

static void set_due(struct furnisher *f, struct slice namespace)
{
    struct kube_agenda_item *item = kube_agenda_add(&f->agenda, namespace);
    if (item)
        kube_agenda_set(&f->agenda, item, 0);
}

/* The namespace of an object of this row; empty: the key is of another object. */
static struct slice namespace_of(struct slice key, size_t row)
{
    struct slice rest = behind(key, objects[row].prefix), name = slice_from_text(objects[row].name);
    if (rest.len < name.len + 2 || rest.ptr[rest.len - name.len - 1] != '/' ||
        memcmp(rest.ptr + rest.len - name.len, name.ptr, name.len) != 0)
        return SLICE_EMPTY;
    return slice_sub(rest, 0, rest.len - name.len - 1);
}

static bool take_event(struct kube_follower *follower, const struct watch_event *event,
                       int64_t revision)
{
    struct furnisher *f = furnisher_of(&follower->job);
    (void)revision;
    if (event->created && !event->tombstone)
        set_due(f, behind(event->key, NAMESPACES));
    for (size_t i = 0; i < COUNT_OF(objects); i++) {
        if (event->tombstone || (objects[i].has_data && !event->created))
            set_due(f, namespace_of(event->key, i));
    }
    return true;
}

static void take_namespace(struct kube_follower *follower, struct kube_kv kv)
{
    set_due(furnisher_of(&follower->job), behind(kv.key, NAMESPACES));
}

/* -- One namespace -- */

static void finish(struct furnisher *f)
{
    /* It stays if there were events meanwhile. */
    if (!heap_has(&f->item->in_times))
        kube_agenda_remove(&f->agenda, f->item);
    f->item = NULL;
    kube_job_next(&f->follower.job);
}

/* It is looked at again later, each time after a longer pause. */
static void fail(struct furnisher *f, const char *why, struct slice answer)
{
    struct kube_agenda_item *item = f->item;
    int64_t pause_s = item->failures < 6 ? 1 << item->failures : RETRY_MAX_S;
    if (!item->failures++)
        log_warn("cannot make an object of a namespace; trying again",
                 LOG_SLICE("namespace", kube_agenda_name(item)),
                 LOG_TEXT("object", objects[f->object].name), LOG_TEXT("why", why),
                 LOG_SLICE("answer", answer));
    kube_agenda_rest(&f->agenda, item,
                     clock_add(loop_now_ns(f->follower.job.api->loop), pause_s * NS_PER_S));
    kube_agenda_set(&f->agenda, item, 0);
    finish(f);
}

static void next_object(struct furnisher *f)
{
    f->step = LOOK;
    if (++f->object == COUNT_OF(objects))
        finish(f);
    else
        kube_job_next(&f->follower.job);
}

/* Whether the data is the certificate and nothing else. */
static bool has_certificate(struct furnisher *f, struct slice value)
{
    struct arena arena;
    struct json_node *tree;
    struct error error;
    struct slice text = SLICE_EMPTY;
    bool has = false;
    if (value.len > 2 * root_ca(f).len + OTHER_BYTES_MAX)
        return false;
    arena_init(&arena, NULL, 0, OBJECT_BYTES_MAX);
    if (json_tree_read(&arena, value, &tree, &error) == ST_OK) {
        const struct json_node *data = json_node_named(tree, "data");
        const struct json_node *node = json_node_named(data, "ca.crt");
        has = node && data->count == 1 && json_node_text(node, &arena, &text) == ST_OK &&
              slice_equal(text, root_ca(f));
    }
    arena_fini(&arena);
    return has;
}

static void on_read(struct engine_op *op)
{
    struct furnisher *f = furnisher_of(kube_job_of_range(op));
    struct engine_range *range = &f->follower.job.range;
    struct kube_object object;
    struct slice field;
    struct kube_kv kv = {0};
    bool found = op->status == ST_OK && engine_range_next(range, &field);
    if (found)
        kv = kube_kv_of(field);
    enum status status = range->op.status;
    /* What is not JSON belongs to a kube-apiserver. */
    bool is_object = found && kube_object_parse(kv.value, &object) == ST_OK;
    bool stays = is_object && !kube_object_is_deleting(&object);
    bool changed = stays && objects[f->object].has_data && !has_certificate(f, kv.value);
    engine_range_close(range);
    if (status != ST_OK) {
        fail(f, status_text(status), SLICE_EMPTY);
    } else if (f->step == READ_NAMESPACE && !stays) {
        finish(f);
    } else if (f->step == READ_NAMESPACE) {
        f->step = LOOK;
        kube_job_next(&f->follower.job);
    } else if (!found || changed) {
        f->step = WRITE;
        f->revision = kv.mod_revision;
        kube_job_next(&f->follower.job);
    } else {
        next_object(f);
    }
}

static void read_key(struct furnisher *f, const char *prefix, struct slice namespace,
                     struct slice name)
{
    struct kube_job *job = &f->follower.job;
    struct slice key;
    kube_job_reset_arena(job, READ_BYTES_MAX);
    if (kube_key_make(&job->arena, prefix, namespace, name, &key) != ST_OK)
        xalloc_check(NULL, READ_BYTES_MAX);
    job->request = (struct pb_range_request){.key = key};
    kube_job_read(job, on_read);
}

/* -- Writing -- */

static void on_written(struct kube_own_request *request, const struct http_local *answer)
{
    struct furnisher *f = CONTAINER_OF(request, struct furnisher, request);
    unsigned code = http_local_code(answer);
    if (code == 200 || code == 201)
        next_object(f);
    else if (code == 404)
        finish(f); /* the namespace is gone, or the config map, whose event follows */
    else
        fail(f, "the request was refused", http_local_body(answer));
}

/* {"ca.crt":"…"} */
static enum status write_data(struct furnisher *f, struct buf *to)
{
    struct kube_job *job = &f->follower.job;
    struct json_node *data = json_node_new(&job->arena, JSON_TYPE_OBJECT);
    struct json_node *text = json_node_new_text(&job->arena, root_ca(f));
    if (!data || !text)
        return ST_NOMEM;
    TRY(json_node_set(&job->arena, data, SLICE_LITERAL("ca.crt"), text));
    return json_tree_write(data, to);
}

static enum status write_body(struct furnisher *f, struct buf *to)
{
    if (f->revision) {
        TRY(buf_append_format(to,
                              "[{\"op\":\"add\",\"path\":\"/metadata/resourceVersion\",\"value\":"
                              "\"%" PRIi64 "\"},{\"op\":\"add\",\"path\":\"/data\",\"value\":",
                              f->revision));
        TRY(write_data(f, to));
        return buf_append_text(to, "}]");
    }
    TRY(buf_append_format(to, "{\"metadata\":{\"name\":\"%s\"}", objects[f->object].name));
    if (objects[f->object].has_data) {
        TRY(buf_append_text(to, ",\"data\":"));
        TRY(write_data(f, to));
    }
    return buf_append_text(to, "}");
}

static enum status send_object(struct furnisher *f)
{
    AUTO(buf_fini) struct buf path = {0}, body = {0};
    bool patches = f->revision;
    TRY(buf_append_format(&path, "/api/v1/namespaces/%.*s/%s",
                          SLICE_ARGS(kube_agenda_name(f->item)), objects[f->object].plural));
    if (patches)
        TRY(buf_append_format(&path, "/%s", objects[f->object].name));
    TRY(write_body(f, &body));
    f->request.account = objects[f->object].account;
    return kube_own_request_send(
        &f->request, &(struct http_local_request){
                         .method = patches ? SLICE_LITERAL("PATCH") : SLICE_LITERAL("POST"),
                         .path = buf_slice(&path),
                         .query = KUBE_OWN_MANAGER,
                         .content_type = patches ? SLICE_LITERAL("application/json-patch+json")
                                                 : SLICE_LITERAL("application/json"),
                         .body = buf_slice(&body),
                     });
}

/* -- The job -- */

static bool work(struct kube_follower *follower, int64_t *ret_next_ns)
{
    struct furnisher *f = furnisher_of(&follower->job);
    enum status status;
    if (!f->item) {
        f->item = kube_agenda_pop(&f->agenda, loop_now_ns(f->follower.job.api->loop));
        *ret_next_ns = kube_agenda_next_ns(&f->agenda);
        f->step = READ_NAMESPACE;
        f->object = 0;
    }
    if (!f->item)
        return false;
    switch (f->step) {
    case READ_NAMESPACE:
        read_key(f, NAMESPACES, SLICE_EMPTY, kube_agenda_name(f->item));
        break;
    case LOOK:
        read_key(f, objects[f->object].prefix, kube_agenda_name(f->item),
                 slice_from_text(objects[f->object].name));
        break;
    case WRITE:
        kube_job_reset_arena(&f->follower.job, OBJECT_BYTES_MAX);
        if ((status = send_object(f)) != ST_OK)
            fail(f, status_text(status), SLICE_EMPTY);
        break;
    }
    return true;
}

static void begin(struct kube_follower *follower)
{
    kube_agenda_init(&furnisher_of(&follower->job)->agenda, KUBE_AGENDA_NAMESPACE_BYTES_MAX,
                     random_u64(&follower->job.api->random));
}

static void drop(struct kube_follower *follower)
{
    struct furnisher *f = furnisher_of(&follower->job);
    f->item = NULL;
    kube_agenda_fini(&f->agenda);
}

static void fini(struct kube_job *job)
{
    assert(!furnisher_of(job)->request.local);
    kube_follower_fini(kube_follower_of(job));
}

static const struct kube_follower_type type = {
    .job = {.step = kube_follower_step, .fini = fini},
    .first = NAMESPACES,
    .end = "/registry/namespaces0",
    .stands_back = "service accounts and certificates of namespaces are left to "
                   "kube-controller-manager, which holds its lease",
    .begin = begin,
    .drop = drop,
    .object = take_namespace,
    .event = take_event,
    .work = work,
};

void kube_furnish_start(struct kube_api *api, const struct http_route *route)
{
    if (!api->config->furnishes || !api->config->start || engine_forwards(api->engine))
        return;
    struct furnisher *f = xcalloc(1, sizeof(*f));
    f->request =
        (struct kube_own_request){.job = &f->follower.job, .route = route, .done = on_written};
    kube_follower_start(&f->follower, &type, api);
}
