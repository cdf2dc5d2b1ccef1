/*
 * For tests: an informer of a collection (collection_sim_test.h), and a handler that compares what
 * it gets with the server's history. One file of a program includes this.
 */
#ifndef VIGIL_KUBECLIENT_INFORMER_FOLLOWER_SIM_TEST_H
#define VIGIL_KUBECLIENT_INFORMER_FOLLOWER_SIM_TEST_H

#include "kubeclient/data/objects_test.h"
#include "kubeclient/informer/collection_sim_test.h"
#include "kubeclient/informer/handler.h"
#include "kubeclient/informer/informer.h"

static struct kube_world world;
static struct collection collection;

/* -- A handler that knows what the server's history allows -- */

struct follower {
    vigil_kube_informer *informer;
    vigil_kube_handler *handler;
    int known[COLLECTION_NAMES]; /* the version that the handler saw last; 0: none */
    int newest[COLLECTION_NAMES];
    bool delivered[COLLECTION_CHANGES_MAX]; /* by revision */
    bool may_miss[COLLECTION_CHANGES_MAX];  /* the state was requested again after it */
    int synced_at;                          /* the version of the first whole state; 0: none yet */
    int version;                            /* up to which everything is known */
    uint64_t relists;
    bool restored; /* the server went back to an older state, so versions may do so, too */
    unsigned initial, added, updated, deleted, resyncs, unknown;
    vigil_kube_informer *free_informer; /* in its function, after this many changes */
    bool free_handler;
    unsigned free_after;
};

static struct follower follower;

static inline void follow(vigil_kube_handler *handler, const vigil_kube_change *change, void *user)
{
    struct follower *f = user;
    int name = test_number(object_sent(change->object).len
                               ? slice_of(vigil_kube_object_name(change->object).data,
                                          vigil_kube_object_name(change->object).size)
                               : SLICE_EMPTY);
    int version = test_number(object_version(change->object));
    int before = change->before ? test_number(object_version(change->before)) : 0;
    bool deleted = change->kind == VIGIL_KUBE_CHANGE_DELETED;
    assert_int_equal(f->known[name], before);
    assert_int_equal(change->kind == VIGIL_KUBE_CHANGE_ADDED, before == 0);
    assert_true(f->restored || version >= f->newest[name]);
    assert_true(f->restored || change->resync || deleted || version > f->newest[name]);
    f->known[name] = deleted ? 0 : version;
    f->newest[name] = version;
    f->delivered[version] = true;
    f->initial += change->initial;
    f->resyncs += change->resync;
    f->unknown += change->state_unknown;
    f->added += change->kind == VIGIL_KUBE_CHANGE_ADDED;
    f->updated += change->kind == VIGIL_KUBE_CHANGE_UPDATED && !change->resync;
    f->deleted += deleted;
    if (f->free_after && --f->free_after == 0) {
        vigil_kube_informer_free(f->free_informer);
        if (f->free_handler)
            vigil_kube_handler_free(handler);
    }
}

static inline int copied_version(struct follower *f, int name)
{
    char key[32];
    snprintf(key, sizeof(key), "%s/%d", name % 2 ? "odd" : "even", name);
    vigil_kube_object *object = vigil_kube_informer_get(f->informer, vigil_text(key));
    int version = object ? test_number(object_version(object)) : 0;
    vigil_kube_object_unref(object);
    return version;
}

/* What was changed before a list is not delivered one by one. */
static inline void note_relist(struct follower *f, int from, int to)
{
    for (int r = from + 1; r <= to; r++)
        f->may_miss[r] = true;
}

/* After every turn of the client: while it watches, the copy is exactly the state of the version
 * that it claims to know, and that version does not go back. */
static inline void check_follower(struct kube_world *w)
{
    struct follower *f = &follower;
    (void)w;
    if (!f->informer)
        return;
    informer_check(f->informer);
    vigil_kube_informer_stats stats;
    vigil_kube_informer_get_stats(f->informer, &stats, sizeof(stats));
    int version = test_number(slice_from_text(stats.version));
    if (f->informer->reflector.state != REFLECTOR_WATCHING || f->informer->copy->ended)
        return;
    assert_true(f->restored || version >= f->version);
    if (!f->synced_at || stats.relists > f->relists)
        note_relist(f, f->version, version);
    if (!f->synced_at)
        f->synced_at = version;
    f->relists = stats.relists;
    f->version = version;
    for (int name = 0; name < COLLECTION_NAMES; name++)
        assert_int_equal(copied_version(f, name), collection_version(&collection, name, version));
}

static inline void begin_over(enum sim_protocol protocol, const struct sim_options *options)
{
    kube_world_init(&world, protocol, options);
    collection_init(&collection, &world, options ? options->seed : 1);
    for (int name = 0; name < 5; name++)
        collection_put(&collection, name);
    world.check = check_follower;
    follower = (struct follower){0};
}

static inline void begin(void)
{
    begin_over(SIM_HTTP2, NULL);
    assert_true(kube_world_start(&world));
}

static inline void end(void)
{
    struct follower *f = &follower;
    vigil_kube_handler_free(TAKE(f->handler));
    vigil_kube_informer_free(TAKE(f->informer));
    kube_world_fini(&world);
}

static inline vigil_kube_informer_options options_of_pods(void)
{
    vigil_kube_informer_options options;
    vigil_kube_informer_options_init(&options);
    options.target = (vigil_kube_target){.version = "v1", .resource = "pods"};
    return options;
}

static inline vigil_kube_informer *informer_new(vigil_kube_informer_options options)
{
    vigil_kube_informer *informer;
    assert_int_equal(vigil_kube_informer_new(world.kube, &options, &informer), VIGIL_OK);
    return informer;
}

static inline vigil_kube_handler_options handler_options(int place, vigil_kube_handler_fn fn,
                                                         void *user)
{
    vigil_kube_handler_options options;
    vigil_kube_handler_options_init(&options);
    options.place = place;
    options.fn = fn;
    options.user = user;
    return options;
}

static inline vigil_kube_handler *handler_new(vigil_kube_informer *informer,
                                              vigil_kube_handler_options options)
{
    vigil_kube_handler *handler;
    assert_int_equal(vigil_kube_informer_add_handler(informer, &options, &handler), VIGIL_OK);
    return handler;
}

static inline void follow_with(vigil_kube_informer_options options)
{
    struct follower *f = &follower;
    f->informer = informer_new(options);
    f->handler = handler_new(f->informer, handler_options(VIGIL_KUBE_HANDLER_CALLBACK, follow, f));
    assert_int_equal(vigil_kube_informer_start(f->informer), VIGIL_OK);
}

static inline void follow_pods(void)
{
    follow_with(options_of_pods());
}

static inline void run_until_synced(void)
{
    KUBE_WORLD_RUN_UNTIL(&world, vigil_kube_informer_has_synced(follower.informer));
    assert_int_equal(vigil_kube_informer_has_synced(follower.informer), 1);
}

static inline bool handler_has_all(void)
{
    for (int name = 0; name < COLLECTION_NAMES; name++) {
        if (follower.known[name] != collection_version(&collection, name, collection.revision))
            return false;
    }
    return true;
}

/* The final state was delivered, and nothing was missed that the server still had. */
static inline void run_until_complete(void)
{
    struct follower *f = &follower;
    KUBE_WORLD_RUN_UNTIL(&world, handler_has_all() && f->synced_at);
    kube_world_run(&world, NS_PER_S);
    assert_true(handler_has_all());
    for (int r = f->synced_at + 1; r <= collection.revision; r++)
        assert_true(f->delivered[r] || f->may_miss[r]);
    for (int name = 0; name < COLLECTION_NAMES; name++)
        assert_int_equal(copied_version(f, name),
                         collection_version(&collection, name, collection.revision));
    assert_int_equal(vigil_kube_handler_has_synced(f->handler), 1);
}

static inline vigil_kube_informer_stats stats(void)
{
    vigil_kube_informer_stats read;
    vigil_kube_informer_get_stats(follower.informer, &read, sizeof(read));
    return read;
}

static inline void change_some(int count)
{
    for (int i = 0; i < count; i++)
        collection_change_one(&collection);
}

#endif
