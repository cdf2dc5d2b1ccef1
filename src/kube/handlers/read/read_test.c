/* Lists and watches over an engine that completes at once, late or in any order, read by clients
 * that take a few bytes at a time, or disconnect. */
#include "kube/server/bed_test.h"

#include "base/random.h"
#include "codec/json/tree.h"

enum { NAMES = 5, CHANGES = 60, TOLD_MAX = 400, READERS = 12 };

/* -- Turns -- */

/* Reads at most `room` bytes of the answer. */
static void pull(struct peer *peer, size_t room)
{
    uint8_t bytes[512];
    if (peer->over || !http_exchange_flows(&peer->x))
        return;
    size_t n = http_exchange_fill(&peer->x, bytes, size_min(room, sizeof(bytes)));
    assert_int_equal(buf_append(&peer->answer, slice_of(bytes, n)), ST_OK);
}

static void turn(struct random *random)
{
    engine_shard_turn_begin(bed->shard);
    loop_turn(bed->loop, 0);
    for (size_t i = 0; i < bed->count; i++)
        if (!random || random_below(random, 3))
            pull(bed->peers[i], random ? 1 + random_below(random, 300) : 512);
    for (size_t i = 0; i < bed->count; i++)
        if (!bed->peers[i]->over)
            http_exchange_tick(&bed->peers[i]->x, bed->clock.mono_ns);
    engine_shard_turn_end(bed->shard);
}

static bool all_is_quiet(void)
{
    for (size_t i = 0; i < bed->count; i++)
        if (!bed->peers[i]->over && http_exchange_flows(&bed->peers[i]->x))
            return false;
    return fake_waiting(bed->engine) == 0 && loop_next_ns(bed->loop) > bed->clock.mono_ns;
}

static void settle(void)
{
    turn(NULL);
    while (!all_is_quiet()) {
        fake_step(bed->engine);
        turn(NULL);
    }
    turn(NULL);
}

static void pass(int64_t ns)
{
    bed->clock.mono_ns += ns;
    fake_set_now(bed->engine, bed->clock.mono_ns);
    settle();
}

/* -- Events that were received -- */

struct told {
    char type[12], name[8], value[8];
    int64_t revision;
};

struct story {
    struct told told[TOLD_MAX];
    size_t count;
};

static void text_of(struct arena *arena, const struct json_node *node, char *to, size_t room)
{
    struct slice text;
    assert_int_equal(json_node_text(node, arena, &text), ST_OK);
    snprintf(to, room, "%.*s", SLICE_ARGS(text));
}

static struct told told_of(struct arena *arena, const char *type, const struct json_node *object)
{
    struct told told = {0};
    char revision[24];
    snprintf(told.type, sizeof(told.type), "%s", type);
    text_of(arena, json_node_path(object, "metadata.name"), told.name, sizeof(told.name));
    text_of(arena, json_node_path(object, "data.v"), told.value, sizeof(told.value));
    text_of(arena, json_node_path(object, "metadata.resourceVersion"), revision, sizeof(revision));
    told.revision = strtoll(revision, NULL, 10);
    return told;
}

static struct json_node *parse(struct arena *arena, struct slice text)
{
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(arena, text, &root, &error), ST_OK);
    return root;
}

/* The complete events of an answer. */
static struct story *story_of(const struct peer *peer)
{
    struct story *story = calloc(1, sizeof(*story));
    struct slice rest = buf_slice(&peer->answer);
    const uint8_t *end;
    while (rest.len && (end = memchr(rest.ptr, '\n', rest.len))) {
        struct arena arena;
        char type[12];
        size_t len = (size_t)(end - rest.ptr);
        arena_init(&arena, NULL, 0, 1 << 20);
        struct json_node *event = parse(&arena, slice_sub(rest, 0, len));
        text_of(&arena, json_node_named(event, "type"), type, sizeof(type));
        assert_true(story->count < TOLD_MAX);
        story->told[story->count++] = told_of(&arena, type, json_node_named(event, "object"));
        arena_fini(&arena);
        rest = slice_sub(rest, len + 1, rest.len - len - 1);
    }
    return story;
}

/* The items of a list as ADDED events, followed by a bookmark with its revision. */
static struct story *story_of_list(const struct peer *peer)
{
    struct story *story = calloc(1, sizeof(*story));
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct json_node *list = parse(&arena, buf_slice(&peer->answer));
    for (const struct json_node *item = json_node_named(list, "items")->first; item;
         item = item->next)
        story->told[story->count++] = told_of(&arena, "ADDED", item);
    story->told[story->count++] = told_of(&arena, "BOOKMARK", list);
    arena_fini(&arena);
    return story;
}

static bool is(const struct told *told, const char *type)
{
    return strcmp(told->type, type) == 0;
}

static void assert_told(const struct told *a, const struct told *b)
{
    if (strcmp(a->type, b->type) != 0 || strcmp(a->name, b->name) != 0 ||
        strcmp(a->value, b->value) != 0 || a->revision != b->revision)
        fail_msg("%s %s=%s at %lld, and not %s %s=%s at %lld", a->type, a->name, a->value,
                 (long long)a->revision, b->type, b->name, b->value, (long long)b->revision);
}

/* The state at a revision, from the story of all events: the newest of each name, by name. */
static size_t state_at(const struct story *all, int64_t revision, struct told state[NAMES])
{
    size_t count = 0;
    for (int name = 0; name < NAMES; name++) {
        const struct told *newest = NULL;
        for (size_t i = 0; i < all->count && all->told[i].revision <= revision; i++)
            if (all->told[i].name[0] == 'a' + name)
                newest = &all->told[i];
        if (!newest || is(newest, "DELETED"))
            continue;
        state[count] = *newest;
        snprintf(state[count++].type, sizeof(state->type), "ADDED");
    }
    return count;
}

/* Everything after a revision, once and in order, and nothing else but bookmarks. */
static void assert_rest(const struct story *story, size_t at, const struct story *all,
                        int64_t revision)
{
    size_t i = 0;
    while (i < all->count && all->told[i].revision <= revision)
        i++;
    for (; at < story->count; at++) {
        if (is(&story->told[at], "BOOKMARK"))
            continue;
        assert_true(i < all->count);
        assert_told(&story->told[at], &all->told[i++]);
    }
    assert_int_equal(i, all->count);
}

/* The initial events, their end, and then everything after it. */
static void assert_initial(const struct story *story, const struct story *all, bool goes_on)
{
    struct told state[NAMES];
    size_t end = 0;
    while (end < story->count && !is(&story->told[end], "BOOKMARK"))
        end++;
    assert_true(end < story->count);
    int64_t revision = story->told[end].revision;
    assert_int_equal(state_at(all, revision, state), end);
    for (size_t i = 0; i < end; i++)
        assert_told(&story->told[i], &state[i]);
    if (goes_on)
        assert_rest(story, end + 1, all, revision);
}

/* -- Tests -- */

static int64_t newest(void)
{
    struct engine_status status;
    engine_status_get(bed->shard, &status);
    return status.revision;
}

static void change(struct random *random, int i)
{
    char path[128], body[128], name = (char)('a' + random_below(random, NAMES));
    snprintf(path, sizeof(path), CMS "/%c", name);
    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%c\"},\"data\":{\"v\":\"%d\"}}", name,
             i);
    if (random_below(random, 4) == 0) {
        send_json("DELETE", path, "");
    } else {
        send_json("POST", CMS, body); /* one of the two has an effect */
        send_json("PUT", path, body);
    }
}

enum reader { READER_FROM, READER_INITIAL, READER_LIST, READER_KINDS };

struct reading {
    enum reader reader;
    struct peer *peer;
    int64_t from;
    bool left;
};

static struct reading begin_reading(struct random *random)
{
    char path[200];
    struct reading reading = {(enum reader)random_below(random, READER_KINDS), NULL, newest(),
                              false};
    if (reading.reader == READER_FROM)
        snprintf(path, sizeof(path), CMS "?watch=1&resourceVersion=%lld", (long long)reading.from);
    else if (reading.reader == READER_INITIAL)
        snprintf(path, sizeof(path), CMS "?watch=1&allowWatchBookmarks=1");
    else
        snprintf(path, sizeof(path), CMS);
    reading.peer = send_json("GET", path, "");
    return reading;
}

static void check_reading(const struct reading *reading, const struct story *all)
{
    assert_int_equal(reading->peer->code, 200);
    struct story *story =
        reading->reader == READER_LIST ? story_of_list(reading->peer) : story_of(reading->peer);
    if (reading->reader == READER_FROM)
        assert_rest(story, 0, all, reading->from);
    else
        assert_initial(story, all, reading->reader == READER_INITIAL);
    free(story);
}

static void readers_among_changes(void)
{
    struct random random;
    struct reading readings[READERS];
    size_t count = 0;
    char path[128];
    random_init(&random, bed->seed);
    snprintf(path, sizeof(path), CMS "?watch=1&resourceVersion=%lld", (long long)newest());
    struct peer *everything = send_json("GET", path, "");
    for (int i = 0; i < CHANGES; i++) {
        change(&random, i);
        if (count < READERS && random_below(&random, 4) == 0)
            readings[count++] = begin_reading(&random);
        for (size_t steps = random_below(&random, 6); steps--;)
            fake_step(bed->engine);
        turn(&random);
        struct reading *one = count ? &readings[random_below(&random, count)] : NULL;
        if (one && !one->left && random_below(&random, 20) == 0) {
            leave(one->peer);
            one->left = true;
        }
    }
    settle();
    struct story *all = story_of(everything);
    assert_true(all->count > CHANGES / 4);
    for (size_t i = 0; i < count; i++)
        if (!readings[i].left)
            check_reading(&readings[i], all);
    free(all);
}

static void lists_and_watches_during_changes_miss_and_repeat_nothing(void **state)
{
    (void)state;
    for_each_seed(readers_among_changes);
}

static struct peer *ask_list(const char *query, long long revision)
{
    char path[200];
    snprintf(path, sizeof(path), CMS "%s%lld", query, revision);
    return send_json("GET", path, "");
}

static void a_watch_from_now_begins_with_the_newest_revision(void **state)
{
    static const char watching[] =
        "?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=";
    (void)state;
    begin(1, 0);
    struct peer *made = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}");
    settle();
    assert_int_equal(made->code, 201);
    struct peer *watch = ask_list(watching, 0), *gone = ask_list(watching, 0);
    turn(NULL);
    assert_int_equal(watch->code, 0); /* not before the newest revision is known */
    assert_int_equal(fake_waiting(bed->engine), 2);
    leave(gone);
    settle();
    assert_int_equal(watch->code, 200);
    send_json("POST", CMS, "{\"metadata\":{\"name\":\"b\"}}");
    settle();
    assert_answer(watch, 200, "\"name\":\"b\"");
    assert_false(said(watch, "\"name\":\"a\""));
    fake_fail_next(bed->engine, ST_NOT_SYNCED, SLICE_EMPTY);
    struct peer *refused = ask_list(watching, 0);
    settle();
    assert_answer(refused, 429, NULL);
    end();
}

static void from_the_future(void)
{
    struct peer *made = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}");
    settle();
    assert_int_equal(made->code, 201);
    static const char watching[] =
        "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=";
    struct peer *soon[] = {ask_list("/a?resourceVersion=", newest() + 1),
                           ask_list("?resourceVersion=", newest() + 1),
                           ask_list(watching, newest() + 1)};
    struct peer *never[] = {ask_list("/a?resourceVersion=", newest() + 100),
                            ask_list("?resourceVersion=", newest() + 100),
                            ask_list(watching, newest() + 100)};
    struct peer *gone = ask_list("/a?resourceVersion=", newest() + 100);
    pass(2900 * NS_PER_MS);
    leave(gone);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(soon[i]->answer.len + never[i]->answer.len, 0);
    send_json("POST", CMS, "{\"metadata\":{\"name\":\"b\"}}");
    settle();
    pass(50 * NS_PER_MS);
    for (size_t i = 0; i < 3; i++) {
        assert_answer(soon[i], 200, "\"name\":\"a\"");
        assert_int_equal(never[i]->answer.len, 0);
    }
    pass(100 * NS_PER_MS);
    assert_answer(never[0], 504, "Too large resource version");
    assert_answer(never[1], 504, "ResourceVersionTooLarge");
    assert_answer(never[2], 200, "{\"type\":\"ERROR\"");
    assert_true(http_exchange_complete(&never[2]->x));
}

static void a_future_revision_is_waited_for_until_the_timeout(void **state)
{
    (void)state;
    for_each_seed(from_the_future);
}

static void bookmarks(void)
{
    struct peer *marked = send_json("GET", CMS "?watch=1&allowWatchBookmarks=1", "");
    struct peer *plain = send_json("GET", CMS "?watch=1", "");
    struct peer *brief =
        send_json("GET", CMS "?watch=1&allowWatchBookmarks=1&timeoutSeconds=10", "");
    settle();
    send_json("POST", "/api/v1/namespaces/default/secrets", "{\"metadata\":{\"name\":\"s\"}}");
    settle();
    pass(11 * NS_PER_S);
    struct story *story = story_of(brief);
    assert_true(
        http_exchange_complete(&brief->x)); /* its last event is a bookmark with its revision */
    assert_int_equal(story->count, 2);
    assert_int_equal(story->told[1].revision, newest());
    free(story);
    pass(56 * NS_PER_S);
    story = story_of(marked);
    assert_int_equal(story->count, 2);
    assert_true(is(&story->told[1], "BOOKMARK"));
    assert_int_equal(story->told[1].revision, newest());
    free(story);
    assert_int_equal(plain->answer.len, 0);
    assert_false(http_exchange_complete(&marked->x) || http_exchange_complete(&plain->x));
}

static void bookmarks_come_every_minute_and_at_the_end(void **state)
{
    (void)state;
    for_each_seed(bookmarks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_watches_during_changes_miss_and_repeat_nothing),
        cmocka_unit_test(a_future_revision_is_waited_for_until_the_timeout),
        cmocka_unit_test(a_watch_from_now_begins_with_the_newest_revision),
        cmocka_unit_test(bookmarks_come_every_minute_and_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
