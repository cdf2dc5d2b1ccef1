#include "tier_clients.h"

#include "actors.h"
#include "coverage.h"
#include "faults.h"
#include "kube_model.h"
#include "operations.h"
#include "tier.h"
#include "tier_definitions.h"
#include "tier_states.h"
#include "tier_users.h"
#include "tier_watches.h"
#include "trace.h"

#include <stdio.h>
#include <string.h>

enum { ACTORS = 2, PAGES_MAX = 16, ARRIVES_S_MAX = 300, LOSES_S_MAX = 30 };

struct tier_client {
    struct random random;
    struct actor *actor;
};

static struct {
    const struct plan *plan;
    struct tier_client all[ACTORS];
} clients;

static uint64_t below(struct tier_client *c, uint64_t n)
{
    return random_below(&c->random, n);
}

/* -- Answers -- */

/* 0: it was answered; -1: there was no answer; otherwise the code of its status. */
static int code_of(const vigil_kube_call *call)
{
    int code = vigil_kube_call_status(call)->code;
    return vigil_kube_call_error(call)->code == VIGIL_OK ? 0 : code ? code : -1;
}

/* Those that a request may get although nothing is wrong with it. */
static void check_code(int code, const char *what)
{
    static const int expected[] = {-1, 0, 401, 403, 404, 410, 429, 502, 503, 504};
    if (code == 500 && tier_reads_have_failed())
        return;
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        if (code == expected[i])
            return;
    violation("%s is refused with %d", what, code);
}

/* -- Lists -- */

enum freshness { CURRENT, CACHED, NOT_OLDER, EXACT, ANY };

struct listing {
    struct tier_state state;
    enum freshness freshness;
    int64_t version; /* NOT_OLDER, EXACT */
};

static void add_page(struct listing *l, const vigil_kube_call *call)
{
    vigil_bytes items, item;
    int64_t revision = tier_version_of(vigil_text(vigil_kube_call_version(call)));
    if (l->state.revision && revision != l->state.revision)
        violation("a page of a list has version %lld, the one before %lld", (long long)revision,
                  (long long)l->state.revision);
    l->state.revision = revision;
    if (!vigil_json_find(vigil_kube_call_body(call), "items", &items))
        violation("a list has no items");
    vigil_json_iterator iterator = vigil_json_iterate(items);
    while (vigil_json_next(&iterator, NULL, &item)) {
        vigil_kube_object *object;
        if (vigil_kube_object_new(item, &object) != VIGIL_OK)
            violation("an item of a list is not an object");
        tier_state_add_item(&l->state, object);
        vigil_kube_object_unref(object);
    }
}

static void finish_list(const struct listing *l)
{
    if (l->freshness == EXACT && l->state.revision != l->version)
        violation("a list at version %lld has version %lld", (long long)l->version,
                  (long long)l->state.revision);
    tier_states_add(&l->state);
}

static void choose_list(struct tier_client *c, enum freshness freshness, struct listing *l)
{
    static const char *const names[] = {"a current list", "a cached list", "a list not older",
                                        "a list at a version"};
    int64_t back = (int64_t)below(c, 20), newest = operations_seen();
    l->freshness = freshness == ANY ? (enum freshness)below(c, 4) : freshness;
    l->version = newest > back ? newest - back : 1;
    l->state.what = names[l->freshness];
    l->state.floor = l->freshness == CURRENT ? newest : l->freshness == CACHED ? 0 : l->version;
}

/* Returns the code of the last answer, as code_of. CURRENT: whole, so that the tier does not answer
 * from a history that it does not know to be lost. The pages of a list that was passed on may be of
 * it: their version may exist in that history, too. */
static int do_list(struct tier_client *c, enum tier_user user, enum freshness freshness)
{
    struct listing l = {0};
    bool current = freshness == CURRENT;
    char version[32], token[1024] = "";
    vigil_kube_target target = {.version = "v1", .resource = "configmaps"};
    vigil_kube_list_options options = {.size = sizeof(options)};
    choose_list(c, freshness, &l);
    target.name_space = below(c, 3) ? NULL : "default";
    options.limit = below(c, 3) || current ? 0 : 1 + (int64_t)below(c, 3);
    if (below(c, 3) == 0 && !current)
        l.state.scope.group = "ab"[below(c, 2)];
    if (l.state.scope.group)
        options.label_selector = l.state.scope.group == 'a' ? "group=a" : "group=b";
    snprintf(version, sizeof(version), "%lld", (long long)l.version);
    if (l.freshness != CURRENT)
        options.version = l.freshness == CACHED ? "0" : version;
    if (l.freshness > CACHED)
        options.version_match = l.freshness == EXACT ? "Exact" : "NotOlderThan";
    for (int page = 0; page < PAGES_MAX; page++) {
        struct tier_judgement judgement = tier_users_look(user);
        vigil_kube_call *call = vigil_kube_list(tier_users_kube(user), &target, &options);
        (void)vigil_kube_call_run(call);
        int code = code_of(call);
        trace_line("%s of %s, %lld: %d @%s", l.state.what, tier_user_name(user),
                   (long long)l.version, code, vigil_kube_call_version(call));
        coverage_add(COVERAGE_TIER_LIST);
        check_code(code, l.state.what);
        tier_users_judge(&judgement, code, l.state.what);
        if (!code)
            add_page(&l, call);
        snprintf(token, sizeof(token), "%s", vigil_kube_call_continue(call));
        vigil_kube_call_free(call);
        if (code)
            return code;
        if (!*token) {
            finish_list(&l);
            return 0;
        }
        options.continue_token = token;
        options.version = options.version_match = NULL;
    }
    violation("%s has more than %d pages", l.state.what, PAGES_MAX);
}

/* -- Gets -- */

/* An object of the mirror: not older than a version. */
static void do_get(struct tier_client *c, enum tier_user user)
{
    char path[160];
    struct tier_state state = {.what = "a get", .is_object = true};
    int64_t newest = operations_seen(), back = (int64_t)below(c, 10);
    unsigned name = (unsigned)below(c, 4);
    if (below(c, 2) && newest > back)
        state.floor = newest - back;
    snprintf(state.scope.only, KEY_BYTES, "%sm%u", KUBE_ROOT, name);
    snprintf(path, sizeof(path), "/api/v1/namespaces/default/configmaps/m%u?resourceVersion=%lld",
             name, (long long)state.floor);
    struct tier_judgement judgement = tier_users_look(user);
    vigil_kube_call *call =
        vigil_kube_request(tier_users_kube(user), "GET", path, NULL, vigil_text(""));
    (void)vigil_kube_call_run(call);
    int code = code_of(call);
    const vigil_kube_object *object = code ? NULL : vigil_kube_call_object(call);
    check_code(code, state.what);
    tier_users_judge(&judgement, code == 404 ? 0 : code, state.what);
    coverage_add(COVERAGE_TIER_GET);
    if (object) {
        state.revision = tier_version_of(vigil_kube_object_version(object));
        tier_states_show(state.scope.only, state.revision, object);
        tier_states_add(&state);
    }
    trace_line("a get of %s, m%u, %lld: %d @%lld", tier_user_name(user), name,
               (long long)state.floor, code, (long long)state.revision);
    vigil_kube_call_free(call);
}

/* -- Actors -- */

static enum tier_user choose_user(struct tier_client *c)
{
    static const enum tier_user users[] = {TIER_EVE, TIER_ANN,  TIER_ANN,  TIER_ANN,
                                           TIER_DAN, TIER_ROOT, TIER_ROOT, TIER_ROOT};
    return users[below(c, COUNT_OF(users))];
}

static void client_main(void *arg)
{
    struct tier_client *c = arg;
    for (unsigned i = 0; i < clients.plan->operations; i++) {
        uint64_t dice = below(c, 100);
        if (below(c, 3))
            actor_sleep((int64_t)below(c, 300 * NS_PER_MS));
        if (dice < 4)
            tier_throttle(actors_now() + (int64_t)below(c, 3 * NS_PER_S));
        else if (dice < 7)
            tier_fail_reads(actors_now() + (int64_t)below(c, 5 * NS_PER_S));
        else if (dice < 13)
            tier_users_change();
        else if (dice == 13)
            (void)tier_users_expire();
        else if (dice < 30)
            tier_watches_add(choose_user(c), false, &c->random);
        else if (dice < 50)
            do_get(c, choose_user(c));
        else
            (void)do_list(c, choose_user(c), ANY);
        tier_watches_tend(&c->random);
    }
}

void tier_clients_begin(const struct plan *plan)
{
    clients.plan = plan;
    tier_watches_begin();
    tier_users_begin(plan->on[SWITCH_REPLICA]);
}

void tier_clients_start(void)
{
    for (unsigned i = 0; i < ACTORS; i++) {
        struct tier_client *c = &clients.all[i];
        random_init(&c->random, clients.plan->seed * ACTORS + i + 99);
        c->actor = actor_start("tier client", client_main, c);
    }
    tier_definitions_start(clients.plan->seed + 12);
}

void tier_clients_join(void)
{
    for (unsigned i = 0; i < ACTORS; i++)
        actor_join(clients.all[i].actor);
    tier_definitions_join();
}

void tier_clients_end(void)
{
    tier_watches_end();
    tier_users_end();
}

/* -- In the end -- */

static bool is_excused(void)
{
    return faults_have_rotted();
}

/* True: the time is over, but the data is damaged. */
static bool await(bool (*reached)(void), int seconds, const char *what)
{
    struct tier_client *c = &clients.all[0];
    int64_t until = actors_now() + seconds * NS_PER_S;
    while (!reached()) {
        if (actors_now() > until && is_excused())
            return false;
        if (actors_now() > until)
            violation("%s after %d s", what, seconds);
        tier_watches_tend(&c->random);
        actor_sleep(100 * NS_PER_MS);
    }
    return true;
}

static bool ann_has_none(void)
{
    return !tier_watches_run(TIER_ANN);
}

static bool dan_has_none(void)
{
    return !tier_watches_run(TIER_DAN);
}

/* What may be old is answered although the server behind the tier cannot be read. False: the time
 * is over, but the data is damaged. */
static bool settle_without_reads(struct tier_client *c)
{
    enum { FAILING_S = 20, LISTS = 8, FAILED = 500 };
    if (!await(tier_has_mirror, ARRIVES_S_MAX, "the tier does not mirror ConfigMaps"))
        return false;
    tier_fail_reads(actors_now() + FAILING_S * NS_PER_S);
    for (int i = 0; i < LISTS; i++)
        if (do_list(c, TIER_ROOT, CACHED) == FAILED)
            violation("a cached list is not answered while the server behind cannot be read");
    tier_fail_reads(0);
    return true;
}

/* False: the time is over, but the data is damaged. */
static bool settle_token(struct tier_client *c, int begins_s)
{
    tier_watches_add(TIER_DAN, true, &c->random);
    if (!await(tier_watches_have_arrived, begins_s, "a watch of dan does not begin"))
        return false;
    (void)tier_users_expire();
    return await(dan_has_none, ARRIVES_S_MAX, "a watch continues without a valid token");
}

void tier_clients_settle(void)
{
    struct tier_client *c = &clients.all[0];
    /* A connection that has fallen silent is noticed late. */
    int loses_s = clients.plan->on[SWITCH_SILENCE] ? ARRIVES_S_MAX : LOSES_S_MAX;
    tier_fail_reads(0);
    tier_watches_add(TIER_ROOT, true, &c->random); /* so that there is one */
    if (!await(tier_watches_have_arrived, ARRIVES_S_MAX,
               "watches through the tier have not delivered everything"))
        return;
    if (!settle_without_reads(c) || !settle_token(c, loses_s))
        return;
    tier_users_set(true);
    actor_sleep(5 * NS_PER_S);
    tier_watches_add(TIER_ANN, true, &c->random);
    if (!await(tier_watches_have_arrived, loses_s, "a watch with the right does not begin"))
        return;
    tier_users_set(false);
    if (!await(ann_has_none, loses_s, "a watch continues without the right"))
        return;
    actor_sleep(5 * NS_PER_S);
    for (int i = 0; i < 4; i++) {
        (void)do_list(c, TIER_ANN, ANY);
        do_get(c, TIER_ANN);
        (void)do_list(c, TIER_EVE, ANY);
        (void)do_list(c, TIER_DAN, ANY);
        (void)do_list(c, TIER_ROOT, ANY);
    }
}

void tier_clients_lose(void)
{
    static const char *const names[] = {"m0", "m1", "m2"};
    struct tier_client *c = &clients.all[0];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)do_list(c, TIER_ROOT, CURRENT);
        tier_users_create(names[i]);
    }
    if (!await(tier_watches_have_arrived, ARRIVES_S_MAX,
               "watches through the tier have not noticed another history"))
        return;
    /* Lists have a mirror of their own, which may not have noticed it: what is not current may
     * still be of the history that was lost. */
    for (int i = 0; i < 8; i++)
        (void)do_list(c, TIER_ROOT, CURRENT);
}
