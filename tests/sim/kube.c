#include "kube.h"

#include "actors.h"
#include "front.h"
#include "history.h"
#include "machine.h"
#include "operations.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vigil/kube.h>

#define ROOT "/registry/configmaps/default/"

enum { ACTORS_MAX = 4, NAMES = 4, WRITES_MAX = 1024, CONVERGES_S_MAX = 300 };

/* A write that was answered. */
struct write {
    char key[KEY_BYTES];
    int64_t revision; /* of the object in the answer */
    int64_t floor;    /* see struct operation */
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
    struct write writes[WRITES_MAX];
    unsigned write_count;
} kube;

bool kube_owns(const char *key)
{
    return strncmp(key, "/registry/", 10) == 0;
}

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

static void note_write(const vigil_kube_target *target, int64_t floor, const vigil_kube_call *call)
{
    const vigil_kube_object *object = vigil_kube_call_object(call);
    if (!object || kube.write_count == WRITES_MAX)
        return;
    struct write *write = &kube.writes[kube.write_count++];
    snprintf(write->key, KEY_BYTES, "%s%s", ROOT, target->name);
    write->revision = version_of_object(object);
    write->floor = floor;
    operations_see(write->revision);
}

static void run(const char *what, const vigil_kube_target *target, vigil_kube_call *call,
                bool writes)
{
    int64_t floor = operations_seen();
    int code = vigil_kube_call_run(call);
    trace_line("kube %s %s: %s", what, target->name,
               code == VIGIL_OK ? "ok" : vigil_kube_call_error(call)->text);
    if (code == VIGIL_OK && writes)
        note_write(target, floor, call);
    vigil_kube_call_free(call);
}

static vigil_bytes make_body(struct kube_actor *a, const char *name, char body[static 256])
{
    snprintf(body, 256,
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"},"
             "\"data\":{\"text\":\"%u-%u\"}}",
             name, a->number, a->puts++);
    return vigil_text(body);
}

static void do_one(struct kube_actor *a)
{
    char name[16], body[256];
    vigil_kube_target target = {
        .version = "v1", .resource = "configmaps", .name_space = "default", .name = name};
    snprintf(name, sizeof(name), "m%u", (unsigned)below(a, NAMES));
    uint64_t dice = below(a, 10);
    if (dice < 3) {
        vigil_kube_target all = target;
        all.name = NULL;
        run("create", &target, vigil_kube_create(kube.kube, &all, make_body(a, name, body), NULL),
            true);
    } else if (dice < 6) {
        run("update", &target,
            vigil_kube_update(kube.kube, &target, make_body(a, name, body), NULL), true);
    } else if (dice < 7) {
        run("patch", &target,
            vigil_kube_patch(kube.kube, &target, VIGIL_KUBE_PATCH_MERGE,
                             vigil_text("{\"data\":{\"more\":\"x\"}}"), NULL),
            false);
    } else if (dice < 8) {
        run("get", &target, vigil_kube_get(kube.kube, &target), true);
    } else {
        struct operation *op = operation_new(OPERATION_DELETE, 100 + a->number);
        snprintf(op->key, KEY_BYTES, "%s%s", ROOT, name);
        op->answer = ANSWER_UNKNOWN;
        run("delete", &target, vigil_kube_delete(kube.kube, &target, NULL), false);
        operation_done(op);
    }
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
}

void kube_start(const struct plan *plan)
{
    vigil_kube_options options;
    vigil_error error;
    kube.plan = plan;
    kube.write_count = 0;
    kube.count = 1 + (unsigned)(plan->seed % 2);
    vigil_kube_options_init(&options);
    options.server = plan->on[SWITCH_FRONT] ? FRONT_KUBE_ENDPOINT : MACHINE_KUBE_ENDPOINT;
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
    vigil_kube_informer_free(kube.informer);
    vigil_kube_free(kube.kube);
}

/* -- Checks -- */

static bool has_object(const vigil_kube_objects *objects, const struct version *version)
{
    for (size_t i = 0; i < objects->count; i++) {
        vigil_bytes name = vigil_kube_object_name(objects->items[i]);
        const char *expected = version->key + strlen(ROOT);
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
    size_t count =
        history_range(ROOT, "/registry/configmaps/default0", history_revision(), expected);
    if (vigil_kube_informer_list(kube.informer, &objects) != VIGIL_OK)
        return false;
    bool same = objects.count == count;
    for (size_t i = 0; i < count && same; i++)
        same = has_object(&objects, expected[i]);
    vigil_kube_objects_free(&objects);
    return same;
}

/* A connection that has fallen silent is noticed by the system, after 90 seconds. */
void kube_settle(void)
{
    int64_t until = actors_now() + CONVERGES_S_MAX * NS_PER_S;
    while (!vigil_kube_informer_has_synced(kube.informer) || !has_converged()) {
        if (actors_now() > until)
            violation("the informer does not converge on revision %lld",
                      (long long)history_revision());
        actor_sleep(100 * NS_PER_MS);
    }
}

void kube_check(void)
{
    for (unsigned i = 0; i < kube.write_count; i++) {
        const struct write *write = &kube.writes[i];
        const struct version *version = history_get(write->key, write->revision);
        if (write->revision <= history_revision() &&
            (!version || version->revision != write->revision))
            violation("the Kubernetes API has answered with %s @%lld, which is not in the history",
                      write->key, (long long)write->revision);
    }
}
