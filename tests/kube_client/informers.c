/* Informers of configmaps that have the label `test`, compared with what the server says. */
#include "suite.h"

#include <unistd.h>

enum { OBJECTS = 40, CHANGES = 600, WAIT_MS = 60000 };

/* An object as a handler has seen it. */
struct seen {
    long long version; /* only increases */
    char value[64];
    int exists;
};

struct follower {
    pthread_mutex_t mutex;
    vigil_kube *kube;
    vigil_kube_informer *informer;
    vigil_kube_handler *handler;
    struct seen objects[OBJECTS];
    long changes;
    int delay_us; /* delay of the handler, for each change */
};

static long long version_of(const vigil_kube_object *object)
{
    char text[32] = "";
    vigil_bytes version = vigil_kube_object_version(object);
    CHECK(version.size > 0 && version.size < sizeof(text));
    memcpy(text, version.data, version.size);
    return strtoll(text, NULL, 10);
}

/* "object-7": 7. */
static long number_of(const vigil_kube_object *object)
{
    char text[64] = "";
    vigil_bytes name = vigil_kube_object_name(object);
    CHECK(name.size > 7 && name.size < sizeof(text));
    memcpy(text, name.data, name.size);
    return strtol(text + 7, NULL, 10);
}

static void value_of(const vigil_kube_object *object, char *to, size_t size)
{
    vigil_bytes value;
    *to = 0;
    if (vigil_json_find(vigil_kube_object_json(object), "data.key", &value))
        CHECK(vigil_json_text(value, to, size, NULL));
}

/* Every change continues what the handler saw last, and versions never go back. */
static void note(struct seen *seen, const vigil_kube_change *change)
{
    long long version = version_of(change->object);
    CHECK((change->kind == VIGIL_KUBE_CHANGE_ADDED) == !seen->exists);
    CHECK((change->before != NULL) == (seen->exists != 0));
    if (change->before && !change->state_unknown)
        CHECK(version_of(change->before) == seen->version);
    CHECK(version >= seen->version);
    CHECK(version > seen->version || change->kind == VIGIL_KUBE_CHANGE_DELETED);
    seen->version = version;
    seen->exists = change->kind != VIGIL_KUBE_CHANGE_DELETED;
    value_of(change->object, seen->value, sizeof(seen->value));
}

static void on_change(vigil_kube_handler *handler, const vigil_kube_change *change, void *user)
{
    struct follower *f = user;
    (void)handler;
    if (f->delay_us)
        usleep((useconds_t)f->delay_us);
    pthread_mutex_lock(&f->mutex);
    note(&f->objects[number_of(change->object)], change);
    f->changes++;
    pthread_mutex_unlock(&f->mutex);
}

static struct follower *follow(vigil_kube *kube, int place, int delay_us)
{
    struct follower *f = calloc(1, sizeof(*f));
    vigil_kube_informer_options options;
    vigil_kube_handler_options handler_options;
    CHECK(f);
    pthread_mutex_init(&f->mutex, NULL);
    f->kube = kube;
    f->delay_us = delay_us;
    vigil_kube_informer_options_init(&options);
    options.target = configmap(NULL);
    options.label_selector = "test";
    options.no_streaming = getenv("VIGIL_NO_STREAMING") != NULL;
    vigil_kube_handler_options_init(&handler_options);
    handler_options.place = place;
    handler_options.fn = place == VIGIL_KUBE_HANDLER_TAKE ? NULL : on_change;
    handler_options.user = f;
    CHECK(vigil_kube_informer_new(kube, &options, &f->informer) == VIGIL_OK);
    CHECK(vigil_kube_informer_add_handler(f->informer, &handler_options, &f->handler) == VIGIL_OK);
    CHECK(vigil_kube_informer_start(f->informer) == VIGIL_OK);
    CHECK(vigil_kube_informer_wait_synced(f->informer, WAIT_MS) == VIGIL_OK);
    return f;
}

static void follower_free(struct follower *f)
{
    vigil_kube_handler_free(f->handler);
    vigil_kube_informer_free(f->informer);
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

/* -- The server's side -- */

static void object_name(long number, char *to, size_t size)
{
    snprintf(to, size, "object-%ld", number);
}

/* Creates, changes and deletes objects; the same numbers every time. */
static void change_objects(vigil_kube *kube, int exists[OBJECTS], unsigned seed, long count)
{
    char name[32], value[32];
    for (long i = 0; i < count; i++) {
        long number = (long)(rand_r(&seed) % OBJECTS);
        vigil_kube_target target;
        object_name(number, name, sizeof(name));
        snprintf(value, sizeof(value), "value %ld", i);
        target = configmap(name);
        if (!exists[number]) {
            create_configmap(kube, name, value);
            exists[number] = 1;
        } else if (rand_r(&seed) % 4 == 0) {
            EXPECT(vigil_kube_delete(kube, &target, NULL), VIGIL_OK);
            exists[number] = 0;
        } else {
            EXPECT(vigil_kube_update(kube, &target, configmap_json(name, value), NULL), VIGIL_OK);
        }
    }
}

/* What the server has now. */
struct listed {
    struct seen objects[OBJECTS];
};

static void on_item(vigil_kube_call *call, const vigil_kube_object *object, void *user)
{
    struct listed *listed = user;
    struct seen *seen = &listed->objects[number_of(object)];
    (void)call;
    seen->exists = 1;
    seen->version = version_of(object);
    value_of(object, seen->value, sizeof(seen->value));
}

static void list_objects(vigil_kube *kube, struct listed *ret_listed)
{
    vigil_kube_target target = configmap(NULL);
    vigil_kube_list_options options = {.size = sizeof(options), .label_selector = "test"};
    memset(ret_listed, 0, sizeof(*ret_listed));
    EXPECT(vigil_kube_list_each(kube, &target, &options, on_item, ret_listed), VIGIL_OK);
}

static int equals(const struct seen *a, const struct seen *b)
{
    if (!a->exists || !b->exists)
        return a->exists == b->exists;
    return a->version == b->version && strcmp(a->value, b->value) == 0;
}

static int has_all(struct follower *f, const struct listed *listed)
{
    int equal = 1;
    pthread_mutex_lock(&f->mutex);
    for (long i = 0; i < OBJECTS; i++)
        equal &= equals(&f->objects[i], &listed->objects[i]);
    pthread_mutex_unlock(&f->mutex);
    return equal;
}

/* The copy of the informer itself. */
static int copy_has_all(struct follower *f, const struct listed *listed)
{
    char key[128], name[32];
    int equal = 1;
    for (long i = 0; i < OBJECTS; i++) {
        struct seen found = {0};
        object_name(i, name, sizeof(name));
        snprintf(key, sizeof(key), "%s/%s", vigil_kube_namespace(f->kube), name);
        vigil_kube_object *object = vigil_kube_informer_get(f->informer, vigil_text(key));
        if (object) {
            found.exists = 1;
            found.version = version_of(object);
            value_of(object, found.value, sizeof(found.value));
        }
        equal &= equals(&found, &listed->objects[i]);
        vigil_kube_object_unref(object);
    }
    return equal;
}

/* Until the follower has what the server has; at most a minute. */
static void wait_for_state(struct follower *f, vigil_kube *kube)
{
    struct listed listed;
    list_objects(kube, &listed);
    for (long waited_ms = 0; !has_all(f, &listed) || !copy_has_all(f, &listed); waited_ms += 5) {
        CHECK(waited_ms < WAIT_MS);
        usleep(5000);
    }
}

/* -- Tests -- */

static void an_informer_follows_every_change(void)
{
    vigil_kube *kube = new_kube(), *writer = new_kube();
    int exists[OBJECTS] = {0};
    change_objects(writer, exists, 1, OBJECTS);
    struct follower *f = follow(kube, VIGIL_KUBE_HANDLER_CALLBACK, 0);
    wait_for_state(f, writer);
    change_objects(writer, exists, 2, CHANGES);
    wait_for_state(f, writer);
    vigil_kube_informer_stats stats;
    vigil_kube_informer_get_stats(f->informer, &stats, sizeof(stats));
    CHECK(stats.failures == 0 && stats.relists == 0);
    CHECK(vigil_kube_handler_has_synced(f->handler));
    follower_free(f);
    vigil_kube_free(kube);
    vigil_kube_free(writer);
}

static long changes_of(struct follower *f)
{
    pthread_mutex_lock(&f->mutex);
    long changes = f->changes;
    pthread_mutex_unlock(&f->mutex);
    return changes;
}

static void a_slow_handler_gets_the_last_state_and_delays_no_other(void)
{
    vigil_kube *kube = new_kube(), *writer = new_kube();
    int exists[OBJECTS] = {0};
    struct follower *slow = follow(kube, VIGIL_KUBE_HANDLER_THREAD, 20000);
    struct follower *quick = follow(kube, VIGIL_KUBE_HANDLER_THREAD, 0);
    change_objects(writer, exists, 3, CHANGES);
    wait_for_state(quick, writer);
    CHECK(changes_of(slow) < changes_of(quick));
    wait_for_state(slow, writer);
    follower_free(slow);
    follower_free(quick);
    vigil_kube_free(kube);
    vigil_kube_free(writer);
}

static void index_by_value(const vigil_kube_object *object, vigil_kube_index_values *values,
                           void *user)
{
    char text[64];
    (void)user;
    value_of(object, text, sizeof(text));
    vigil_kube_index_values_add(values, vigil_text(text));
}

static void objects_are_found_by_index(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_informer *informer;
    vigil_kube_informer_options options;
    vigil_kube_objects found;
    create_configmap(kube, "object-0", "red");
    create_configmap(kube, "object-1", "green");
    create_configmap(kube, "object-2", "red");
    vigil_kube_informer_options_init(&options);
    options.target = configmap(NULL);
    options.label_selector = "test";
    CHECK(vigil_kube_informer_new(kube, &options, &informer) == VIGIL_OK);
    CHECK(vigil_kube_informer_add_index(informer, "value", index_by_value, NULL) == VIGIL_OK);
    CHECK(vigil_kube_informer_start(informer) == VIGIL_OK);
    CHECK(vigil_kube_informer_wait_synced(informer, WAIT_MS) == VIGIL_OK);
    CHECK(vigil_kube_informer_find(informer, "value", vigil_text("red"), &found) == VIGIL_OK);
    CHECK(found.count == 2);
    vigil_kube_objects_free(&found);
    CHECK(vigil_kube_informer_find(informer, "namespace", vigil_text(vigil_kube_namespace(kube)),
                                   &found) == VIGIL_OK);
    CHECK(found.count == 3);
    vigil_kube_objects_free(&found);
    CHECK(vigil_kube_informer_find(informer, "nothing", vigil_text("x"), &found) ==
          VIGIL_ERROR_ARGUMENT);
    CHECK(vigil_kube_informer_list(informer, &found) == VIGIL_OK && found.count == 3);
    vigil_kube_informer_free(informer); /* objects that are held stay valid */
    vigil_kube_free(kube);
    for (size_t i = 0; i < found.count; i++)
        CHECK(number_of(found.items[i]) < 3);
    vigil_kube_objects_free(&found);
}

static void informers_survive_a_restart(void)
{
    vigil_kube *kube = new_kube(), *writer = new_kube();
    int exists[OBJECTS] = {0};
    change_objects(writer, exists, 4, OBJECTS);
    struct follower *f = follow(kube, VIGIL_KUBE_HANDLER_THREAD, 0);
    for (unsigned round = 0; round < 2; round++) {
        change_objects(writer, exists, 5 + round, CHANGES / 10);
        ask("restart");
        change_objects(writer, exists, 7 + round, CHANGES / 10);
        wait_for_state(f, writer);
    }
    follower_free(f);
    vigil_kube_free(kube);
    vigil_kube_free(writer);
}

/* The followers' connections break all the time, those of the writer do not. */
static void informers_survive_broken_connections(void)
{
    vigil_kube_options options;
    vigil_kube *kube = new_kube(), *writer;
    vigil_error error;
    int exists[OBJECTS] = {0};
    default_options(&options);
    options.server = getenv("VIGIL_DIRECT");
    CHECK(vigil_kube_new(&options, &writer, &error) == VIGIL_OK);
    struct follower *f = follow(kube, VIGIL_KUBE_HANDLER_CALLBACK, 0);
    for (unsigned round = 0; round < 4; round++) {
        change_objects(writer, exists, 20 + round, CHANGES / 2);
        wait_for_state(f, writer);
    }
    follower_free(f);
    vigil_kube_free(kube);
    vigil_kube_free(writer);
}

const struct suite_test informer_fault_tests[] = {
    {"informers_survive_broken_connections", informers_survive_broken_connections},
    {NULL, NULL},
};

const struct suite_test informer_tests[] = {
    {"an_informer_follows_every_change", an_informer_follows_every_change},
    {"a_slow_handler_gets_the_last_state_and_delays_no_other",
     a_slow_handler_gets_the_last_state_and_delays_no_other},
    {"objects_are_found_by_index", objects_are_found_by_index},
    {NULL, NULL},
};

const struct suite_test informer_restart_tests[] = {
    {"informers_survive_a_restart", informers_survive_a_restart},
    {NULL, NULL},
};
