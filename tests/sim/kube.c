#include "kube.h"

#include "actors.h"
#include "coverage.h"
#include "faults.h"
#include "front.h"
#include "history.h"
#include "kube_model.h"
#include "machine.h"
#include "operations.h"
#include "tier.h"
#include "tls.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vigil/kube.h>

enum {
    ACTORS_MAX = 4,
    NAMES = 4,
    SHOWN_MAX = 16,
    CONVERGES_S_MAX = 300,
    BAD_GATEWAY = 502,
    HTTP_TIMEOUT = 504
};

struct kube_actor {
    unsigned number, puts;
    struct random random;
    struct actor *actor;
};

static struct {
    const struct plan *plan;
    vigil_kube *kube;
    vigil_kube_informer *informer;
    struct kube_actor actors[ACTORS_MAX];
    unsigned count;
    vigil_kube_handler *handler;
    /* What the handler has seen last of each object. */
    struct {
        char key[KEY_BYTES];
        int64_t revision;
    } shown[SHOWN_MAX];
    unsigned shown_count;
} kube;

static uint64_t below(struct kube_actor *a, uint64_t n)
{
    return random_below(&a->random, n);
}

/* -- Requests -- */

static int64_t version_of_object(const vigil_kube_object *object)
{
    vigil_bytes version = vigil_kube_object_version(object);
    char text[32] = {0};
    memcpy(text, version.data, size_min(version.size, sizeof(text) - 1));
    return strtoll(text, NULL, 10);
}

static void run(struct kube_answer *answer, vigil_kube_call *call)
{
    static const char *const kinds[] = {"create", "update", "patch", "get", "delete"};
    answer->floor = operations_seen();
    coverage_add((enum coverage)(COVERAGE_KUBE_CREATE + answer->kind));
    int code = vigil_kube_call_run(call);
    const vigil_kube_object *object = code == VIGIL_OK ? vigil_kube_call_object(call) : NULL;
    answer->code = code == VIGIL_OK ? 0 : vigil_kube_call_status(call)->code;
    if (object && answer->kind != KUBE_DELETE)
        answer->revision = version_of_object(object);
    trace_line("kube %s %s if %lld: %s %lld", kinds[answer->kind], answer->key,
               (long long)answer->condition,
               code == VIGIL_OK ? "ok" : vigil_kube_call_error(call)->text,
               (long long)answer->revision);
    if (code == VIGIL_OK || answer->code)
        kube_model_add(answer);
    operations_see(answer->revision);
    kube_model_check_known();
    vigil_kube_call_free(call);
}

/* A resourceVersion that the object has, or had. */
static int64_t choose_condition(struct kube_actor *a, const char *key)
{
    int64_t newest = history_revision();
    const struct version *known =
        history_get(key, below(a, 4) ? newest : (int64_t)below(a, (uint64_t)newest) + 1);
    return known && below(a, 4) ? known->revision : 0;
}

static vigil_bytes make_body(struct kube_actor *a, const struct kube_answer *answer,
                             char body[static 256])
{
    char condition[64] = "";
    if (answer->condition)
        snprintf(condition, sizeof(condition), ",\"resourceVersion\":\"%lld\"",
                 (long long)answer->condition);
    snprintf(body, 256,
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
             "\"metadata\":{\"name\":\"%s\",\"labels\":{\"group\":\"%c\"}%s},"
             "\"data\":{\"text\":\"%u-%u\"}}",
             answer->key + strlen(KUBE_ROOT), "ab"[a->puts % 3 == 0], condition, a -> number,
             a -> puts);
    a->puts++;
    return vigil_text(body);
}

static vigil_bytes make_patch(struct kube_actor *a, const struct kube_answer *answer,
                              char body[static 256])
{
    char condition[64] = "";
    if (answer->condition)
        snprintf(condition, sizeof(condition), "\"metadata\":{\"resourceVersion\":\"%lld\"},",
                 (long long)answer->condition);
    snprintf(body, 256, "{%s\"data\":{\"more\":\"%u-%u\"}}", condition, a->number, a->puts++);
    return vigil_text(body);
}

/* The deletion is also one of the operations that may have deleted the key. */
static void do_delete(struct kube_answer *answer, const vigil_kube_target *target)
{
    char version[32];
    vigil_kube_delete_options options = {.size = sizeof(options)};
    struct operation *op = operation_new(OPERATION_DELETE, 100);
    snprintf(version, sizeof(version), "%lld", (long long)answer->condition);
    if (answer->condition)
        options.version = version;
    snprintf(op->key, KEY_BYTES, "%s", answer->key);
    run(answer, vigil_kube_delete(kube.kube, target, &options));
    /* A write that was not answered in time may have been made, and so may one that the watch tier
     * has passed on and that got no answer. */
    bool is_refused = answer->code && answer->code != HTTP_TIMEOUT && answer->code != BAD_GATEWAY;
    op->answer = is_refused ? ANSWER_REFUSED : ANSWER_UNKNOWN;
    operation_done(op);
}

static void do_one(struct kube_actor *a)
{
    static const enum kube_call_kind choice[] = {KUBE_CREATE, KUBE_CREATE, KUBE_CREATE, KUBE_UPDATE,
                                                 KUBE_UPDATE, KUBE_UPDATE, KUBE_PATCH,  KUBE_GET,
                                                 KUBE_DELETE, KUBE_DELETE};
    char name[16], body[256];
    vigil_kube_target all = {.version = "v1", .resource = "configmaps", .name_space = "default"};
    vigil_kube_target one = all;
    struct kube_answer answer = {.kind = choice[below(a, COUNT_OF(choice))]};
    snprintf(name, sizeof(name), "m%u", (unsigned)below(a, NAMES));
    snprintf(answer.key, KEY_BYTES, "%s%s", KUBE_ROOT, name);
    one.name = name;
    if (answer.kind != KUBE_CREATE && answer.kind != KUBE_GET)
        answer.condition = choose_condition(a, answer.key);
    if (answer.kind == KUBE_CREATE)
        run(&answer, vigil_kube_create(kube.kube, &all, make_body(a, &answer, body), NULL));
    else if (answer.kind == KUBE_UPDATE)
        run(&answer, vigil_kube_update(kube.kube, &one, make_body(a, &answer, body), NULL));
    else if (answer.kind == KUBE_PATCH)
        run(&answer, vigil_kube_patch(kube.kube, &one, VIGIL_KUBE_PATCH_MERGE,
                                      make_patch(a, &answer, body), NULL));
    else if (answer.kind == KUBE_GET)
        run(&answer, vigil_kube_get(kube.kube, &one));
    else
        do_delete(&answer, &one);
}

static void actor_main(void *arg)
{
    struct kube_actor *a = arg;
    for (unsigned i = 0; i < kube.plan->operations / 2; i++) {
        actor_sleep((int64_t)below(a, 300 * NS_PER_MS));
        do_one(a);
    }
}

/* -- Life -- */

static int64_t *shown_revision(const char *key)
{
    unsigned i = 0;
    while (i < kube.shown_count && strcmp(kube.shown[i].key, key) != 0)
        i++;
    assert(i < SHOWN_MAX);
    if (i == kube.shown_count) {
        snprintf(kube.shown[i].key, KEY_BYTES, "%s", key);
        kube.shown[i].revision = 0;
        kube.shown_count++;
    }
    return &kube.shown[i].revision;
}

/* An object never goes back, and every state of it is in the history. */
static void on_change(vigil_kube_handler *handler, const vigil_kube_change *change, void *user)
{
    (void)handler, (void)user;
    struct kube_answer answer = {.kind = KUBE_INFORMED,
                                 .revision = version_of_object(change->object)};
    vigil_bytes name = vigil_kube_object_name(change->object);
    snprintf(answer.key, KEY_BYTES, "%s%.*s", KUBE_ROOT, (int)name.size, (const char *)name.data);
    bool deleted = change->kind == VIGIL_KUBE_CHANGE_DELETED;
    trace_line("informer: %s %s @%lld", deleted ? "deleted" : "is", answer.key,
               (long long)answer.revision);
    int64_t *last = shown_revision(answer.key);
    if (!deleted && answer.revision <= *last)
        violation("the informer shows %s @%lld after @%lld", answer.key, (long long)answer.revision,
                  (long long)*last);
    *last = answer.revision > *last ? answer.revision : *last;
    if (deleted)
        return;
    coverage_add(COVERAGE_INFORMED);
    operations_see(answer.revision);
    kube_model_add(&answer);
    kube_model_check_known();
}

static void add_handler(void)
{
    vigil_kube_handler_options options;
    vigil_kube_handler_options_init(&options);
    options.place = kube.plan->seed % 3 ? VIGIL_KUBE_HANDLER_CALLBACK : VIGIL_KUBE_HANDLER_THREAD;
    options.fn = on_change;
    if (vigil_kube_informer_add_handler(kube.informer, &options, &kube.handler) != VIGIL_OK)
        violation("a handler cannot be added");
}

static void make_informer(void)
{
    vigil_kube_informer_options options;
    vigil_kube_informer_options_init(&options);
    options.target =
        (vigil_kube_target){.version = "v1", .resource = "configmaps", .name_space = "default"};
    options.no_streaming = kube.plan->seed % 2;
    if (vigil_kube_informer_new(kube.kube, &options, &kube.informer) != VIGIL_OK ||
        vigil_kube_informer_start(kube.informer) != VIGIL_OK)
        violation("an informer cannot be created");
    add_handler();
}

void kube_start(const struct plan *plan)
{
    vigil_kube_options options;
    vigil_error error;
    kube.plan = plan;
    kube.shown_count = 0;
    kube.count = 1 + (unsigned)(plan->seed % 2);
    vigil_kube_options_init(&options);
    options.server = sim_tls_endpoint(plan->on[SWITCH_TIER]    ? TIER_KUBE_ENDPOINT
                                      : plan->on[SWITCH_FRONT] ? FRONT_KUBE_ENDPOINT
                                                               : MACHINE_KUBE_ENDPOINT);
    options.token = plan->on[SWITCH_TIER] ? "root" : NULL;
    options.ca_file = sim_tls_ca_file();
    options.calls_per_second = 0;
    options.call_timeout_ms = 5000;
    options.connect_timeout_ms = 1000;
    if (vigil_kube_new(&options, &kube.kube, &error) != VIGIL_OK)
        violation("a client of the Kubernetes API cannot be created: %s", error.text);
    make_informer();
    for (unsigned i = 0; i < kube.count; i++) {
        struct kube_actor *a = &kube.actors[i];
        *a = (struct kube_actor){.number = i};
        random_init(&a->random, plan->seed * ACTORS_MAX + i + 77);
        a->actor = actor_start("kube", actor_main, a);
    }
}

void kube_join(void)
{
    for (unsigned i = 0; i < kube.count; i++)
        actor_join(kube.actors[i].actor);
}

void kube_end(void)
{
    vigil_kube_handler_free(kube.handler);
    vigil_kube_informer_free(kube.informer);
    vigil_kube_free(kube.kube);
}

/* -- Checks -- */

static bool has_object(const vigil_kube_objects *objects, const struct version *version)
{
    for (size_t i = 0; i < objects->count; i++) {
        vigil_bytes name = vigil_kube_object_name(objects->items[i]);
        const char *expected = version->key + strlen(KUBE_ROOT);
        if (strlen(expected) == name.size && memcmp(expected, name.data, name.size) == 0)
            return version_of_object(objects->items[i]) == version->revision;
    }
    return false;
}

/* The informer has exactly the objects of the newest revision. */
static bool has_converged(void)
{
    vigil_kube_objects objects;
    const struct version *expected[RANGE_MAX];
    size_t count = history_range(KUBE_ROOT, KUBE_ROOT_END, history_revision(), expected);
    if (vigil_kube_informer_list(kube.informer, &objects) != VIGIL_OK)
        return false;
    bool same = objects.count == count;
    for (size_t i = 0; i < count && same; i++)
        same = has_object(&objects, expected[i]);
    vigil_kube_objects_free(&objects);
    return same;
}

/* A connection that has fallen silent is noticed by the system, after 90 seconds. A server whose
 * data is damaged may refuse to list the objects. */
void kube_settle(void)
{
    int64_t until = actors_now() + CONVERGES_S_MAX * NS_PER_S;
    while (!vigil_kube_informer_has_synced(kube.informer) || !has_converged()) {
        if (actors_now() > until && faults_have_rotted())
            return;
        if (actors_now() > until)
            violation("the informer does not converge on revision %lld",
                      (long long)history_revision());
        actor_sleep(100 * NS_PER_MS);
    }
}
