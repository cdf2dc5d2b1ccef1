#include "tier_definitions.h"

#include "actors.h"
#include "coverage.h"
#include "faults.h"
#include "operations.h"
#include "tier_users.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFINITIONS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define DEFINITION DEFINITIONS "/gates.example.com"
#define GATES "/apis/example.com/v1/namespaces/default/gates"

enum {
    ROUNDS = 2,
    OBJECTS = 2,
    CONFLICT = 409,
    NOT_FOUND = 404,
    /* The tier believes about ten answers that there is no such resource, and the faults may
     * replace each of them by a minute of silence. */
    ENDS_S_MAX = 900,
};

static const char definition[] =
    "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
    "\"metadata\":{\"name\":\"gates.example.com\"},\"spec\":{\"group\":\"example.com\","
    "\"scope\":\"Namespaced\",\"names\":{\"plural\":\"gates\",\"kind\":\"Gate\"},"
    "\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,"
    "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{"
    "\"round\":{\"type\":\"integer\"}}}}}]}}";

static struct {
    struct random random;
    struct actor *actor;
    long round;
    /* The watch of the round. */
    unsigned shown, deleted; /* objects */
    bool ended;
} definitions;

/* -- Requests -- */

/* 0: it was answered; -1: there was no answer; otherwise the code of its status. */
static int ask(vigil_kube *kube, const char *method, const char *path, const char *body)
{
    vigil_kube_call *call = vigil_kube_request(kube, method, path, NULL, vigil_text(body));
    int code = vigil_kube_call_run(call) == VIGIL_OK ? 0 : vigil_kube_call_status(call)->code;
    if (!code && vigil_kube_call_error(call)->code != VIGIL_OK)
        code = -1;
    vigil_kube_call_free(call);
    return code;
}

/* Without the tier, until it is answered, or with this code. False: the data is damaged. */
static bool insist(const char *method, const char *path, const char *body, int code)
{
    enum { ATTEMPTS_MAX = 600 };
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        int got = ask(tier_users_behind(), method, path, body);
        if (got == code || (got == 0 && code != NOT_FOUND))
            return true;
        if (faults_have_rotted())
            return false;
        actor_sleep(NS_PER_S / 2);
    }
    violation("%s %s has not succeeded for minutes", method, path);
}

static long round_of(vigil_bytes json)
{
    vigil_bytes found;
    char text[16] = "";
    if (vigil_json_find(json, "round", &found))
        snprintf(text, sizeof(text), "%.*s", (int)found.size, (const char *)found.data);
    return strtol(text, NULL, 10);
}

/* -- Lists -- */

/* oldest: of the rounds that it may show. */
static void list(bool current, long oldest)
{
    vigil_bytes items, item;
    long newest = definitions.round;
    const char *path = current ? GATES : GATES "?resourceVersion=0";
    vigil_kube_call *call =
        vigil_kube_request(tier_users_kube(TIER_ROOT), "GET", path, NULL, vigil_text(""));
    (void)vigil_kube_call_run(call);
    bool has_items = vigil_kube_call_error(call)->code == VIGIL_OK &&
                     vigil_json_find(vigil_kube_call_body(call), "items", &items);
    vigil_json_iterator iterator = vigil_json_iterate(has_items ? items : vigil_text("[]"));
    while (vigil_json_next(&iterator, NULL, &item)) {
        long round = round_of(item);
        if (round < oldest || round > newest)
            violation("a %s list of gates shows one of round %ld, but it is from %ld to %ld",
                      current ? "current" : "cached", round, oldest, newest);
    }
    trace_line("a %s list of gates: %d", current ? "current" : "cached",
               vigil_kube_call_status(call)->code);
    vigil_kube_call_free(call);
}

/* -- The watch -- */

static int on_event(vigil_kube_watch *watch, const vigil_kube_event *event, void *user)
{
    (void)watch, (void)user;
    trace_line("watch of gates: %d", (int)event->type);
    if (event->type == VIGIL_KUBE_ENDED)
        definitions.ended = true;
    if (!event->object)
        return VIGIL_KUBE_CONTINUE;
    long round = round_of(vigil_kube_object_json(event->object));
    if (round != definitions.round)
        violation("a watch of gates shows one of round %ld in round %ld", round, definitions.round);
    definitions.shown += event->type == VIGIL_KUBE_ADDED;
    definitions.deleted += event->type == VIGIL_KUBE_DELETED;
    if (definitions.deleted > definitions.shown || definitions.shown > OBJECTS)
        violation("a watch of gates shows %u objects and %u deletions", definitions.shown,
                  definitions.deleted);
    return VIGIL_KUBE_CONTINUE;
}

static vigil_kube_watch *begin_watch(void)
{
    vigil_kube_watch *watch;
    vigil_kube_watch_options options;
    vigil_kube_watch_options_init(&options);
    options.target = (vigil_kube_target){
        .group = "example.com", .version = "v1", .resource = "gates", .name_space = "default"};
    options.initial_events = true;
    options.timeout_s = 2 * ENDS_S_MAX;
    definitions.shown = definitions.deleted = 0;
    definitions.ended = false;
    if (vigil_kube_watch_new(tier_users_kube(TIER_ROOT), &options, on_event, NULL, &watch) !=
        VIGIL_OK)
        violation("a watch of gates cannot be created");
    return watch;
}

static void await_end(void)
{
    int64_t until = actors_now() + ENDS_S_MAX * NS_PER_S;
    while (!definitions.ended) {
        if (actors_now() > until)
            violation("a watch of gates continues without their definition");
        actor_sleep(100 * NS_PER_MS);
    }
}

/* -- Rounds -- */

static bool define(void)
{
    char body[256];
    definitions.round++;
    if (!insist("POST", DEFINITIONS, definition, CONFLICT) || !insist("GET", GATES, "", 0))
        return false;
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(body, sizeof(body),
                 "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Gate\","
                 "\"metadata\":{\"name\":\"g%d\"},\"round\":%ld}",
                 i, definitions.round);
        if (!insist("POST", GATES, body, CONFLICT))
            return false;
    }
    return true;
}

static bool delete_definition(void)
{
    coverage_add(COVERAGE_UNDEFINED);
    trace_line("the definition of gates is deleted");
    return insist("DELETE", DEFINITION, "", NOT_FOUND) && insist("GET", DEFINITION, "", NOT_FOUND);
}

/* False: the data is damaged. */
static bool do_round(void)
{
    if (!define())
        return false;
    list(true, definitions.round);
    list(false, 1);
    vigil_kube_watch *watch = begin_watch();
    actor_sleep((int64_t)random_below(&definitions.random, 3 * NS_PER_S));
    bool is_deleted = delete_definition();
    if (is_deleted)
        await_end();
    vigil_kube_watch_free(watch);
    if (is_deleted)
        list(true, definitions.round + 1);
    return is_deleted;
}

/* The server deletes the objects, and the definition after them. */
static void expect_deletions(const char *prefix, const char *end)
{
    struct operation *op = operation_new(OPERATION_DELETE, 102);
    snprintf(op->key, KEY_BYTES, "%s", prefix);
    snprintf(op->end, KEY_BYTES, "%s", end);
    op->answer = ANSWER_UNKNOWN;
    operation_done(op);
}

static void actor_main(void *arg)
{
    (void)arg;
    expect_deletions("/registry/example.com/", "/registry/example.com0");
    expect_deletions("/registry/apiextensions.k8s.io/", "/registry/apiextensions.k8s.io0");
    for (int i = 0; i < ROUNDS && do_round(); i++)
        actor_sleep((int64_t)random_below(&definitions.random, NS_PER_S));
}

void tier_definitions_start(uint64_t seed)
{
    definitions.round = 0;
    random_init(&definitions.random, seed);
    definitions.actor = actor_start("tier definitions", actor_main, NULL);
}

void tier_definitions_join(void)
{
    actor_join(definitions.actor);
}
