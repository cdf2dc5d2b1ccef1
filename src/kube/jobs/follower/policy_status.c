#include "kube/jobs/follower/policy_status.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "kube/jobs/follower/agenda.h"
#include "kube/jobs/follower/follower.h"
#include "kube/jobs/follower/own_request.h"
#include "kube/policy/admission/admission.h"
#include "kube/policy/policies/type_check.h"

#define POLICIES "/registry/validatingadmissionpolicies/"
#define MANAGER "validatingadmissionpolicy-status"

enum {
    POLICY_BYTES_MAX = 64 << 20, /* memory for a policy and its warnings */
    RETRY_MAX_S = 60,            /* the pause after many failures */
};

enum step { READ, KINDS, CHECK, WRITE };

struct checker {
    struct kube_follower follower;
    struct kube_agenda agenda; /* policies to look at */
    struct kube_own_request request;

    /* The policy that is looked at. */
    struct kube_agenda_item *item; /* NULL: none is */
    enum step step;
    struct arena arena; /* memory of the following */
    int64_t generation;
    struct kube_kinds *kinds; /* a reference: the check uses them */
    struct kube_type_check check;
    size_t at; /* the next kind */
    struct kube_offload_job offload;
    bool checked; /* the result of the last kind */
};

static struct checker *checker_of(struct kube_job *job)
{
    return CONTAINER_OF(kube_follower_of(job), struct checker, follower);
}

/* -- Events -- */

static void set_due(struct checker *c, struct slice key)
{
    struct slice prefix = SLICE_LITERAL(POLICIES);
    struct kube_agenda_item *item =
        kube_agenda_add(&c->agenda, slice_sub(key, prefix.len, key.len - prefix.len));
    if (item)
        kube_agenda_set(&c->agenda, item, 0);
}

static bool take_event(struct kube_follower *follower, const struct watch_event *event,
                       int64_t revision)
{
    (void)revision;
    if (!event->tombstone)
        set_due(checker_of(&follower->job), event->key);
    return true;
}

static void take_policy(struct kube_follower *follower, struct kube_kv kv)
{
    set_due(checker_of(&follower->job), kv.key);
}

/* -- One policy -- */

static void forget(struct checker *c)
{
    kube_type_check_fini(&c->check);
    kube_kinds_unref(c->kinds);
    arena_fini(&c->arena);
    c->check = (struct kube_type_check){0};
    c->kinds = NULL;
    c->step = READ;
    c->at = 0;
}

static void finish(struct checker *c)
{
    /* It stays if there were events meanwhile. */
    if (!heap_has(&c->item->in_times))
        kube_agenda_remove(&c->agenda, c->item);
    c->item = NULL;
    forget(c);
    kube_job_next(&c->follower.job);
}

/* It is looked at again later, each time after a longer pause. */
static void fail(struct checker *c, const char *why, struct slice answer)
{
    struct kube_agenda_item *item = c->item;
    int64_t pause_s = item->failures < 6 ? 1 << item->failures : RETRY_MAX_S;
    if (!item->failures++ && !c->follower.job.api->jobs->stopped)
        log_warn("cannot check the types of an admission policy; trying again",
                 LOG_SLICE("policy", kube_agenda_name(item)), LOG_TEXT("why", why),
                 LOG_SLICE("answer", answer));
    kube_agenda_rest(&c->agenda, item,
                     clock_add(loop_now_ns(c->follower.job.api->loop), pause_s * NS_PER_S));
    kube_agenda_set(&c->agenda, item, 0);
    finish(c);
}

static int64_t number_at(const struct json_node *policy, const char *path)
{
    int64_t number = 0;
    const struct json_node *node = json_node_path(policy, path);
    return node && json_node_int(node, &number) ? number : 0;
}

/* ST_INVALID: it has nothing that is to be checked. */
static enum status take_stored(struct checker *c, struct slice value)
{
    struct json_node *tree;
    struct slice text;
    struct error error;
    TRY(arena_dup(&c->arena, value, &text));
    enum status status = json_tree_read(&c->arena, text, &tree, &error);
    if (status == ST_NOMEM)
        return status;
    if (status != ST_OK)
        return ST_INVALID;
    c->generation = number_at(tree, "metadata.generation");
    c->check.arena = &c->arena;
    c->check.policy = tree;
    return c->generation > number_at(tree, "status.observedGeneration") ? ST_OK : ST_INVALID;
}

static void on_read(struct engine_op *op)
{
    struct checker *c = checker_of(kube_job_of_range(op));
    struct engine_range *range = &c->follower.job.range;
    struct slice field;
    enum status status = op->status;
    if (status == ST_OK) {
        bool found = engine_range_next(range, &field);
        status = found ? take_stored(c, kube_kv_of(field).value) : range->op.status;
        /* It is gone. */
        if (!found && status == ST_OK)
            status = ST_INVALID;
    }
    engine_range_close(range);
    if (status == ST_INVALID) {
        finish(c);
    } else if (status != ST_OK) {
        fail(c, status_text(status), SLICE_EMPTY);
    } else {
        c->step = KINDS;
        kube_job_next(&c->follower.job);
    }
}

static void read_policy(struct checker *c)
{
    struct kube_job *job = &c->follower.job;
    struct slice key;
    forget(c);
    arena_init(&c->arena, NULL, 0, POLICY_BYTES_MAX);
    kube_job_reset_arena(job, KUBE_FOLLOWER_ARENA_BYTES_MAX);
    if (kube_key_make(&job->arena, POLICIES, SLICE_EMPTY, kube_agenda_name(c->item), &key) != ST_OK)
        xalloc_check(NULL, KUBE_FOLLOWER_ARENA_BYTES_MAX);
    job->request = (struct pb_range_request){.key = key};
    kube_job_read(job, on_read);
}

static void on_kinds(struct kube_registry_wait *wait)
{
    struct checker *c = checker_of(kube_job_of_kinds(wait));
    if (wait->status != ST_OK) {
        fail(c, status_text(wait->status), SLICE_EMPTY);
        return;
    }
    c->kinds = kube_kinds_ref(kube_registry_kinds(c->follower.job.api->registry));
    kube_type_check_begin(&c->check, c->kinds);
    c->step = c->check.kind_count ? CHECK : WRITE;
    kube_job_next(&c->follower.job);
}

/* -- Checking -- */

static void run_check(struct worker_job *job)
{
    struct checker *c = CONTAINER_OF(job, struct checker, offload.worker);
    c->checked = kube_type_check_kind(&c->check, c->at);
}

static void on_checked(struct kube_offload_job *job)
{
    struct checker *c = CONTAINER_OF(job, struct checker, offload);
    enum status status = job->worker.status;
    if (status == ST_OK && !c->checked)
        status = ST_NOMEM;
    if (status != ST_OK) {
        fail(c, status_text(status), SLICE_EMPTY);
        return;
    }
    if (++c->at == c->check.kind_count)
        c->step = WRITE;
    kube_job_next(&c->follower.job);
}

/* A policy may have many expressions, and is never urgent: requests that wait for the worker come
 * between its kinds. */
static void check_kind(struct checker *c)
{
    struct kube_offload *offload = &c->follower.job.api->offload;
    c->offload = (struct kube_offload_job){.worker = {.run = run_check, .must_run = true},
                                           .back = on_checked};
    if (!offload->worker) {
        run_check(&c->offload.worker);
        on_checked(&c->offload);
        return;
    }
    enum status status = kube_offload_send(offload, 0, NULL, &c->offload);
    if (status == ST_OK)
        kube_job_run(&c->follower.job);
    else
        fail(c, status_text(status), SLICE_EMPTY);
}

/* -- Writing -- */

static void on_written(struct kube_own_request *request, const struct http_local *answer)
{
    struct checker *c = CONTAINER_OF(request, struct checker, request);
    unsigned code = http_local_code(answer);
    if (code == 200 || code == 404)
        finish(c);
    else
        fail(c, "the request was refused", http_local_body(answer));
}

/* A policy of the same name that was created meanwhile has another uid, and is not changed. */
static enum status write_body(struct checker *c, struct buf *to)
{
    const struct json_node *metadata = json_node_named(c->check.policy, "metadata");
    struct json_writer w;
    struct slice uid;
    TRY(json_node_text(json_node_named(metadata, "uid"), &c->arena, &uid));
    json_writer_init(&w, to);
    json_begin_object(&w);
    json_member_text(&w, "apiVersion", "admissionregistration.k8s.io/v1");
    json_member_text(&w, "kind", "ValidatingAdmissionPolicy");
    json_member_object(&w, "metadata");
    json_member_string(&w, "name", kube_agenda_name(c->item));
    json_member_string(&w, "uid", uid);
    json_end_object(&w);
    json_member_object(&w, "status");
    json_member_i64(&w, "observedGeneration", c->generation);
    json_key(&w, "typeChecking");
    kube_type_check_write(&c->check, &w);
    json_end_object(&w);
    json_end_object(&w);
    return json_writer_finish(&w);
}

static enum status send_status(struct checker *c)
{
    AUTO(buf_fini) struct buf path = {0}, body = {0};
    TRY(buf_append_format(
        &path, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/%.*s/status",
        SLICE_ARGS(kube_agenda_name(c->item))));
    TRY(write_body(c, &body));
    return kube_own_request_send(&c->request,
                                 &(struct http_local_request){
                                     .method = SLICE_LITERAL("PATCH"),
                                     .path = buf_slice(&path),
                                     .query = SLICE_LITERAL("fieldManager=" MANAGER "&force=true"),
                                     .content_type = SLICE_LITERAL("application/apply-patch+yaml"),
                                     .body = buf_slice(&body),
                                 });
}

static void write_status(struct checker *c)
{
    enum status status = send_status(c);
    if (status != ST_OK)
        fail(c, status_text(status), SLICE_EMPTY);
}

/* -- The job -- */

static bool work(struct kube_follower *follower, int64_t *ret_next_ns)
{
    struct checker *c = checker_of(&follower->job);
    if (!c->item) {
        c->item = kube_agenda_pop(&c->agenda, loop_now_ns(follower->job.api->loop));
        *ret_next_ns = kube_agenda_next_ns(&c->agenda);
        c->step = READ;
    }
    if (!c->item)
        return false;
    switch (c->step) {
    case READ:
        read_policy(c);
        break;
    case KINDS:
        kube_job_read_kinds(&follower->job, on_kinds);
        break;
    case CHECK:
        check_kind(c);
        break;
    case WRITE:
        write_status(c);
        break;
    }
    return true;
}

static void begin(struct kube_follower *follower)
{
    kube_agenda_init(&checker_of(&follower->job)->agenda, KUBE_AGENDA_NAME_BYTES_MAX,
                     random_u64(&follower->job.api->random));
}

static void drop(struct kube_follower *follower)
{
    struct checker *c = checker_of(&follower->job);
    c->item = NULL;
    forget(c);
    kube_agenda_fini(&c->agenda);
}

static void fini(struct kube_job *job)
{
    assert(!checker_of(job)->request.local);
    kube_follower_fini(kube_follower_of(job));
}

static const struct kube_follower_type type = {
    .job = {.step = kube_follower_step, .fini = fini},
    .first = POLICIES,
    .end = "/registry/validatingadmissionpolicies0",
    .follows_loaded = true,
    .stands_back = "the types of admission policies are left to kube-controller-manager, which "
                   "holds its lease",
    .begin = begin,
    .drop = drop,
    .object = take_policy,
    .event = take_event,
    .work = work,
};

void kube_policy_status_start(struct kube_api *api, const struct http_route *route)
{
    if (!api->config->checks_policies || !kube_admission_uses(api->admission, KUBE_POLICIES))
        return;
    struct checker *c = xcalloc(1, sizeof(*c));
    c->request = (struct kube_own_request){.job = &c->follower.job,
                                           .route = route,
                                           .account = "validatingadmissionpolicy-status-controller",
                                           .done = on_written};
    kube_follower_start(&c->follower, &type, api);
}
