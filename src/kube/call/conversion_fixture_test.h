/*
 * For tests of conversions by a webhook: a converter on a simulated network
 * (kube/webhook/caller_fixture_test.h), what a conversion uses of an API, and a definition with the
 * versions v1, in which objects are stored, v2 and v3. One file of a program includes this.
 */
#ifndef VIGIL_KUBE_CALL_CONVERSION_FIXTURE_TEST_H
#define VIGIL_KUBE_CALL_CONVERSION_FIXTURE_TEST_H

#include "kube/call/api_state.h"
#include "kube/call/conversion_batch.h"
#include "kube/webhook/caller_fixture_test.h"

#include <sys/wait.h>
#include <unistd.h>

enum converter_way {
    CONVERTER_IS_GOOD,
    CONVERTER_SAYS_OTHER_UID,
    CONVERTER_LEAVES_OUT,
    CONVERTER_ADDS,
    CONVERTER_RENAMES_BAD, /* objects named "bad" */
    CONVERTER_REFUSES,
    CONVERTER_SAYS_NONSENSE,
    CONVERTER_SAYS_MANY, /* JSON whose tree needs much memory, if there are several objects */
};

/* What it answers, and what it has been asked. */
struct converter {
    enum converter_way way;
    size_t grows;   /* each object, by as many bytes */
    size_t objects; /* in all questions */
    size_t counts[64];
    char question[4096]; /* the beginning of the latest */
};

struct conversion_world {
    struct hook_world hooks;
    struct converter converter;
    struct kube_api api;
    struct schema_pool *pool;
    struct kube_definition *definition; /* with revision 7 */
    const struct kube_custom *v1, *v2, *v3;
};

/* -- The converter -- */

enum { MANY_ITEMS = 1000 * 1000 };

static inline void converter_replace(struct buf *text, const char *old, const char *new)
{
    AUTO(buf_fini) struct buf made = {0};
    const uint8_t *at = memmem(text->ptr, text->len, old, strlen(old));
    if (!at)
        return;
    size_t before = (size_t)(at - text->ptr), after = before + strlen(old);
    assert_int_equal(buf_append(&made, slice_of(text->ptr, before)), ST_OK);
    assert_int_equal(buf_append(&made, slice_from_text(new)), ST_OK);
    assert_int_equal(buf_append(&made, slice_of(text->ptr + after, text->len - after)), ST_OK);
    struct buf old_text = *text;
    *text = made;
    made = old_text;
}

static inline void converter_convert(const struct converter *c, const struct json_node *object,
                                     const char *version, struct buf *to)
{
    AUTO(buf_fini) struct buf text = {0};
    char old[128], new[128];
    struct slice from = json_node_named(object, "apiVersion")->text;
    assert_int_equal(json_tree_write(object, &text), ST_OK);
    snprintf(old, sizeof(old), "\"apiVersion\":\"%.*s\"", SLICE_ARGS(from));
    snprintf(new, sizeof(new), "\"apiVersion\":\"%s\"", version);
    converter_replace(&text, old, new);
    if (c->way == CONVERTER_RENAMES_BAD)
        converter_replace(&text, "\"name\":\"bad\"", "\"name\":\"other\"");
    if (c->grows) {
        char *host = malloc(c->grows + 16);
        memset(host, 'x', c->grows + 16);
        memcpy(host, "\"host\":\"", 8);
        host[c->grows + 8] = 0;
        converter_replace(&text, "\"host\":\"", host);
        free(host);
    }
    assert_int_equal(buf_append(to, buf_slice(&text)), ST_OK);
}

static inline void converter_say_many(struct buf *to)
{
    assert_int_equal(buf_append_text(to, "{\"response\":[1"), ST_OK);
    for (int i = 0; i < MANY_ITEMS; i++)
        assert_int_equal(buf_append_text(to, ",1"), ST_OK);
    assert_int_equal(buf_append_text(to, "]}"), ST_OK);
}

static inline void converter_say(struct converter *c, const struct json_node *root, struct buf *to)
{
    const struct json_node *object = json_node_items_at(root, "request.objects");
    struct slice uid = json_node_path(root, "request.uid")->text;
    struct slice desired = json_node_path(root, "request.desiredAPIVersion")->text;
    char version[64];
    bool first = true;
    snprintf(version, sizeof(version), "%.*s", SLICE_ARGS(desired));
    if (c->way == CONVERTER_SAYS_OTHER_UID)
        uid = SLICE_LITERAL("other");
    if (c->way == CONVERTER_LEAVES_OUT)
        object = object->next;
    assert_int_equal(
        buf_append_format(to,
                          "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/"
                          "v1\",\"response\":{\"uid\":\"%.*s\",\"result\":{\"status\":\"%s\","
                          "\"message\":\"no\"},\"convertedObjects\":[",
                          SLICE_ARGS(uid), c->way == CONVERTER_REFUSES ? "Failure" : "Success"),
        ST_OK);
    for (; object; object = object->next) {
        assert_int_equal(buf_append_text(to, first ? "" : ","), ST_OK);
        converter_convert(c, object, version, to);
        first = false;
    }
    assert_int_equal(buf_append_text(to, c->way == CONVERTER_ADDS ? ",{}]}}" : "]}}"), ST_OK);
}

static inline void converter_answer(struct hook_site *site, struct slice question, struct buf *to)
{
    struct hook_world *hooks = CONTAINER_OF(site, struct hook_world, site);
    struct converter *c = &CONTAINER_OF(hooks, struct conversion_world, hooks)->converter;
    struct arena arena;
    struct json_node *root;
    struct error error;
    size_t count = 0;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    pool_must(json_tree_read(&arena, question, &root, &error), &error);
    for (const struct json_node *o = json_node_items_at(root, "request.objects"); o; o = o->next)
        count++;
    snprintf(c->question, sizeof(c->question), "%.*s", SLICE_ARGS(question));
    c->objects += count;
    if (site->requests <= COUNT_OF(c->counts))
        c->counts[site->requests - 1] = count;
    if (c->way == CONVERTER_SAYS_NONSENSE)
        assert_int_equal(buf_append_text(to, "{nonsense"), ST_OK);
    else if (c->way == CONVERTER_SAYS_MANY && count > 1)
        converter_say_many(to);
    else
        converter_say(c, root, to);
    arena_fini(&arena);
}

/* -- The world -- */

/* One that the converter converts. */
static inline struct kube_definition *conversion_define(struct conversion_world *w,
                                                        const char *plural)
{
    struct kube_definition *definition;
    static const char format[] =
        "{'kind':'CustomResourceDefinition','metadata':{'name':'%s.example.com'},'spec':{"
        "'group':'example.com','scope':'Namespaced','names':{'plural':'%s'},'versions':[%s],"
        "'conversion':{'strategy':'Webhook','webhook':{'conversionReviewVersions':['v1'],"
        "'clientConfig':{'url':'https://server.test:%u/hook/convert','caBundle':'%s'}}}},"
        "'status':{'acceptedNames':{'kind':'Gate','listKind':'GateList','singular':'gate'},"
        "'conditions':[{'type':'Established','status':'True'}]}}";
    char versions[2048] = "", text[8192];
    for (int i = 1; i <= 3; i++)
        snprintf(versions + strlen(versions), sizeof(versions) - strlen(versions),
                 "%s{'name':'v%d','served':true,'storage':%s,'schema':{'openAPIV3Schema':{'type':"
                 "'object','properties':{'spec':{'type':'object','properties':{'host':{'type':"
                 "'string'},'note':{'type':'string','default':'none'}}}}}}}",
                 i == 1 ? "" : ",", i, i == 1 ? "true" : "false");
    snprintf(text, sizeof(text), format, plural, plural, versions, hook_port(&w->hooks),
             w->hooks.ca);
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    assert_int_equal(kube_definition_new(w->pool, slice_from_text(text), 7, &definition), ST_OK);
    return definition;
}

static inline void conversion_world_init(struct conversion_world *w)
{
    *w = (struct conversion_world){.pool = schema_pool_new()};
    hook_world_init(&w->hooks);
    w->hooks.site.answer = converter_answer;
    w->api.loop = w->hooks.server.loop;
    w->api.webhooks = w->hooks.caller;
    random_init(&w->api.random, 1);
    w->definition = conversion_define(w, "gates");
    w->v1 = kube_definition_version(w->definition, SLICE_LITERAL("example.com/v1"));
    w->v2 = kube_definition_version(w->definition, SLICE_LITERAL("example.com/v2"));
    w->v3 = kube_definition_version(w->definition, SLICE_LITERAL("example.com/v3"));
    assert_true(w->v1 && w->v2 && w->v3);
}

/* Everything was freed that used the API. */
static inline void conversion_world_fini(struct conversion_world *w)
{
    hook_run(&w->hooks, 10 * NS_PER_MS);
    assert_int_equal(w->api.under_way, 0);
    assert_int_equal(w->hooks.under_way, 0);
    kube_definition_unref(w->definition);
    schema_pool_free(w->pool);
    hook_world_fini(&w->hooks);
}

static inline int64_t conversion_now(const struct conversion_world *w)
{
    return pool_world_now(&w->hooks.server);
}

/* -- Objects -- */

/* One of this version and name, with more members of its spec: ",'x':1", in which ' stands for ".
 */
static inline struct slice conversion_object(struct arena *arena, const char *version,
                                             const char *name, const char *more)
{
    size_t bytes = strlen(more) + 256;
    char *text = arena_alloc(arena, bytes);
    snprintf(text, bytes,
             "{'kind':'Gate','apiVersion':'example.com/%s','metadata':{'name':'%s','namespace':'n',"
             "'uid':'u'},'spec':{'host':'h'%s}}",
             version, name, more);
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    return slice_from_text(text);
}

/* More members with this many bytes; to be freed. */
static inline char *conversion_long(size_t bytes)
{
    char *more = malloc(bytes + 16);
    snprintf(more, bytes + 16, ",'x':'%0*d'", (int)bytes, 0);
    return more;
}

static inline void conversion_expect(struct slice json, const char *version, const char *name)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct slice expected = conversion_object(&arena, version, name, "");
    if (!slice_equal(json, expected))
        fail_msg("%.*s, and not %.*s", SLICE_ARGS(json), SLICE_ARGS(expected));
    arena_fini(&arena);
}

/* -- Memory -- */

/*
 * Runs the test with each allocation of the API's thread failing in turn, alone and with all that
 * follow, in a process of its own: it ends as usual, or the process logs that there is no memory,
 * and aborts. Returns the number of allocations.
 */
static inline size_t conversion_starve(struct conversion_world *w,
                                       void (*test)(struct conversion_world *w))
{
    enum { FAR = 1 << 20 };
    size_t total = FAR, aborts = 0;
    for (size_t n = 0; n <= 2 * total; n++) {
        char said[4096] = "";
        int out[2], status;
        ssize_t len = 0, got;
        assert_int_equal(pipe(out), 0);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            dup2(out[1], STDERR_FILENO);
            setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failed assertion ends the process */
            memory_fail_on = n > total;
            faulty_memory_at = n ? (n - 1) % total + 1 : FAR; /* at first they are counted */
            test(w);
            fprintf(stderr, "%zu", FAR - faulty_memory_at);
            _exit(0);
        }
        close(out[1]);
        while ((got = read(out[0], said + len, sizeof(said) - 1 - (size_t)len)) > 0)
            len += got;
        close(out[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        bool aborted = WIFSIGNALED(status) && strstr(said, "vigil: out of memory");
        aborts += aborted;
        if (!aborted && status != 0)
            fail_msg("allocation %zu of %zu: status %x: %s", n, total, (unsigned)status, said);
        if (n == 0)
            total = strtoul(said, NULL, 10);
    }
    assert_true(aborts < 2 * total);
    return total;
}

#endif
