/*
 * Clients of libvigil that do random operations and print each as a line of JSON, in the form that
 * tests/histories/op.go describes:
 *
 *     histories_client ENDPOINT START SECONDS CLIENTS SEED
 *
 * START is a time of CLOCK_MONOTONIC in nanoseconds, from which cells of keys are counted. When all
 * operations are done, a line "done" follows. Then the program reads a revision, and ends when its
 * watch has received everything up to it.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <vigil/vigil.h>

enum {
    CELL_NANOS = 500000000,
    KEYS_PER_CELL = 6,
    CALL_TIMEOUT_MS = 1500,
    CLIENTS_MAX = 64,
    SETTLE_SECONDS = 60,
    KEY_BYTES = 64,
    ACTIONS_MAX = 2
};

struct action {
    const char *kind;
    char key[KEY_BYTES];
    char value[KEY_BYTES];
    int prefix, prev;
    int64_t lease;
};

struct comparison {
    char key[KEY_BYTES];
    const char *field, *relation;
    int64_t number;
};

/* One operation on keys: a single action, or a transaction. */
struct step {
    const char *name;
    int serializable;
    int has_condition;
    struct comparison condition;
    struct action then[ACTIONS_MAX], otherwise[ACTIONS_MAX];
    size_t then_count, otherwise_count;
};

/* One client with one operation at a time. Owned by its thread. */
struct worker {
    vigil_client *client;
    pthread_t thread;
    int number;
    unsigned seed;
    int count; /* number of operations */
    int64_t start, end;
};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int chance(struct worker *w, int n)
{
    return rand_r(&w->seed) % n;
}

static void rest_ms(int ms)
{
    struct timespec t = {.tv_sec = 0, .tv_nsec = (long)ms * 1000000};
    nanosleep(&t, NULL);
}

/* -- Lines -- */

struct line {
    FILE *out;
    char *text;
    size_t size;
};

static void line_open(struct line *l)
{
    *l = (struct line){0};
    l->out = open_memstream(&l->text, &l->size);
    if (!l->out)
        abort();
}

/* Prints the line at once, so that those of several threads do not mix. */
static void line_close(struct line *l)
{
    fputc('\n', l->out);
    fclose(l->out);
    fwrite(l->text, 1, l->size, stdout);
    free(l->text);
}

static void print_kv(FILE *out, const vigil_kv *kv)
{
    fprintf(out,
            "{\"key\":\"%.*s\",\"value\":\"%.*s\",\"create\":%" PRId64 ",\"mod\":%" PRId64
            ",\"version\":%" PRId64 ",\"lease\":%" PRId64 "}",
            VIGIL_ARGS(kv->key), VIGIL_ARGS(kv->value), kv->create_revision, kv->mod_revision,
            kv->version, kv->lease);
}

static void print_kvs(FILE *out, const vigil_kv *kvs, size_t count)
{
    fputs("{\"kvs\":[", out);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            fputc(',', out);
        print_kv(out, &kvs[i]);
    }
    fputc(']', out);
}

static void print_range(FILE *out, const vigil_range_response *r)
{
    print_kvs(out, r->kvs, r->kv_count);
    fputc('}', out);
}

static void print_put(FILE *out, const vigil_put_response *r)
{
    print_kvs(out, r->prev_kv, r->prev_kv ? 1 : 0);
    fputc('}', out);
}

static void print_delete(FILE *out, const vigil_delete_response *r)
{
    print_kvs(out, r->prev_kvs, r->prev_kv_count);
    fprintf(out, ",\"deleted\":%" PRId64 "}", r->deleted);
}

static void print_txn(FILE *out, const vigil_txn_response *r)
{
    fprintf(out, ",\"succeeded\":%s,\"results\":[", r->succeeded ? "true" : "false");
    for (size_t i = 0; i < r->response_count; i++) {
        const vigil_op_response *op = &r->responses[i];
        if (i > 0)
            fputc(',', out);
        if (op->kind == VIGIL_OP_RANGE)
            print_range(out, op->as.range);
        else if (op->kind == VIGIL_OP_PUT)
            print_put(out, op->as.put);
        else
            print_delete(out, op->as.removal);
    }
}

static void print_actions(FILE *out, const char *name, const struct action *list, size_t count)
{
    fprintf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        fprintf(out,
                "%s{\"kind\":\"%s\",\"key\":\"%s\",\"value\":\"%s\",\"prefix\":%s,\"prev\":%s,"
                "\"lease\":%" PRId64 "}",
                i > 0 ? "," : "", list[i].kind, list[i].key, list[i].value,
                list[i].prefix ? "true" : "false", list[i].prev ? "true" : "false", list[i].lease);
    fputc(']', out);
}

/* Prints who did what when, and how it ended. */
static void print_outcome(FILE *out, const struct worker *w, const char *name, int64_t call_time,
                          const vigil_call *call)
{
    const vigil_error *error = vigil_call_error(call);
    const vigil_header *header = vigil_call_header(call);
    const char *outcome = "ok";
    if (error->code != VIGIL_OK)
        outcome = error->outcome == VIGIL_UNKNOWN ? "unknown" : "refused";
    fprintf(out,
            "{\"client\":\"v%d\",\"op\":\"%s\",\"call\":%" PRId64 ",\"return\":%" PRId64
            ",\"outcome\":\"%s\",\"error\":\"%s\",\"revision\":%" PRId64,
            w->number, name, call_time, now(), outcome, vigil_code_name(error->code),
            header ? header->revision : 0);
}

/* -- Operations on keys -- */

static vigil_range_request range_of(const struct step *s, const struct action *a, char *end)
{
    vigil_range_request r;
    vigil_range_request_init(&r);
    r.key = vigil_text(a->key);
    if (a->prefix)
        r.range_end = vigil_prefix_end(r.key, end);
    r.serializable = (uint8_t)s->serializable;
    return r;
}

static vigil_put_request put_of(const struct action *a)
{
    vigil_put_request r;
    vigil_put_request_init(&r);
    r.key = vigil_text(a->key);
    r.value = vigil_text(a->value);
    r.lease = a->lease;
    r.prev_kv = (uint8_t)a->prev;
    return r;
}

static vigil_delete_request delete_of(const struct action *a, char *end)
{
    vigil_delete_request r;
    vigil_delete_request_init(&r);
    r.key = vigil_text(a->key);
    if (a->prefix)
        r.range_end = vigil_prefix_end(r.key, end);
    r.prev_kv = (uint8_t)a->prev;
    return r;
}

static void add_actions(vigil_txn *txn, const struct step *s, const struct action *list,
                        size_t count)
{
    char end[KEY_BYTES];
    for (size_t i = 0; i < count; i++) {
        vigil_range_request range = range_of(s, &list[i], end);
        vigil_put_request put = put_of(&list[i]);
        vigil_delete_request removal = delete_of(&list[i], end);
        if (list[i].kind[0] == 'g')
            vigil_txn_range(txn, &range);
        else if (list[i].kind[0] == 'p')
            vigil_txn_put_with(txn, &put);
        else
            vigil_txn_delete_with(txn, &removal);
    }
}

static vigil_call *txn_call(struct worker *w, const struct step *s)
{
    const struct comparison *c = &s->condition;
    vigil_txn *txn = vigil_txn_new(w->client);
    int relation = c->relation && c->relation[0] == '<' ? VIGIL_LESS : VIGIL_EQUAL;
    if (s->has_condition && c->field[0] == 'v')
        vigil_txn_if_version(txn, vigil_text(c->key), relation, c->number);
    else if (s->has_condition)
        vigil_txn_if_mod_revision(txn, vigil_text(c->key), relation, c->number);
    add_actions(txn, s, s->then, s->then_count);
    vigil_txn_else(txn);
    add_actions(txn, s, s->otherwise, s->otherwise_count);
    vigil_call *call = vigil_txn_call(txn);
    vigil_txn_free(txn);
    return call;
}

static vigil_call *call_of(struct worker *w, const struct step *s)
{
    char end[KEY_BYTES];
    const struct action *a = &s->then[0];
    if (s->has_condition || s->then_count > 1)
        return txn_call(w, s);
    vigil_range_request range = range_of(s, a, end);
    vigil_put_request put = put_of(a);
    vigil_delete_request removal = delete_of(a, end);
    if (a->kind[0] == 'g')
        return vigil_range(w->client, &range);
    return a->kind[0] == 'p' ? vigil_put_with(w->client, &put)
                             : vigil_delete_with(w->client, &removal);
}

static void print_results(FILE *out, const struct step *s, const vigil_call *call)
{
    if (vigil_call_error(call)->code != VIGIL_OK)
        return;
    if (vigil_txn_result(call)) {
        print_txn(out, vigil_txn_result(call));
    } else {
        fputs(",\"succeeded\":true,\"results\":[", out);
        if (s->then[0].kind[0] == 'g')
            print_range(out, vigil_range_result(call));
        else if (s->then[0].kind[0] == 'p')
            print_put(out, vigil_put_result(call));
        else
            print_delete(out, vigil_delete_result(call));
    }
    fputc(']', out);
}

/* Does one operation and prints it. Returns whether it succeeded. */
static int run_step(struct worker *w, const struct step *s)
{
    struct line l;
    line_open(&l);
    vigil_call *call = call_of(w, s);
    vigil_call_set_timeout(call, CALL_TIMEOUT_MS);
    int64_t begin = now();
    int code = vigil_call_run(call);
    print_outcome(l.out, w, s->name, begin, call);
    if (s->serializable)
        fputs(",\"serializable\":true", l.out);
    if (s->has_condition)
        fprintf(l.out,
                ",\"if\":[{\"key\":\"%s\",\"field\":\"%s\",\"relation\":\"%s\",\"number\":%" PRId64
                "}]",
                s->condition.key, s->condition.field, s->condition.relation, s->condition.number);
    print_actions(l.out, "then", s->then, s->then_count);
    print_actions(l.out, "else", s->otherwise, s->otherwise_count);
    print_results(l.out, s, call);
    fputc('}', l.out);
    line_close(&l);
    vigil_call_free(call);
    return code == VIGIL_OK;
}

static int64_t cell_now(const struct worker *w)
{
    return (now() - w->start) / CELL_NANOS;
}

static void pick_key(struct worker *w, int64_t cell, char *key)
{
    snprintf(key, KEY_BYTES, "h/%" PRId64 "/%d", cell, chance(w, KEYS_PER_CELL));
}

static struct action action_of(struct worker *w, const char *kind, const char *key)
{
    struct action a = {.kind = kind};
    snprintf(a.key, sizeof(a.key), "%s", key);
    if (kind[0] == 'p')
        snprintf(a.value, sizeof(a.value), "v%d-%d", w->number, w->count);
    a.prev = kind[0] != 'g' && chance(w, 2);
    return a;
}

/* A transaction on one key, or in every second cell on two. */
static void make_txn(struct worker *w, int64_t cell, struct step *s)
{
    char key[KEY_BYTES], other[KEY_BYTES];
    pick_key(w, cell, key);
    pick_key(w, cell, other);
    s->name = "txn";
    s->has_condition = 1;
    s->condition = (struct comparison){.field = "version", .relation = chance(w, 2) ? "<" : "="};
    snprintf(s->condition.key, sizeof(s->condition.key), "%s", key);
    s->condition.number = chance(w, 4);
    s->then[s->then_count++] = action_of(w, "put", key);
    s->otherwise[s->otherwise_count++] = action_of(w, chance(w, 3) ? "get" : "delete", key);
    if (cell % 2 == 1 && strcmp(key, other) != 0) {
        s->then[s->then_count++] = action_of(w, chance(w, 3) ? "put" : "delete", other);
        s->otherwise[s->otherwise_count++] = action_of(w, "get", other);
    }
}

static void make_step(struct worker *w, int64_t cell, struct step *s)
{
    char key[KEY_BYTES];
    int dice = chance(w, 100);
    *s = (struct step){0};
    pick_key(w, cell, key);
    if (dice < 22) {
        make_txn(w, cell, s);
        return;
    }
    s->then_count = 1;
    if (dice < 55) {
        s->name = "put";
        s->then[0] = action_of(w, "put", key);
    } else if (dice < 65) {
        s->name = "delete";
        s->then[0] = action_of(w, "delete", key);
    } else if (dice < 70 && cell % 2 == 1) {
        s->name = "list";
        snprintf(key, sizeof(key), "h/%" PRId64 "/", cell);
        s->then[0] = action_of(w, "get", key);
        s->then[0].prefix = 1;
    } else {
        s->serializable = dice >= 90;
        s->name = s->serializable ? "serializable get" : "get";
        s->then[0] = action_of(w, "get", key);
    }
}

/* -- Leases and locks -- */

/* Runs a call about a lease or lock, and prints it with the fields that are given. Returns whether
 * it succeeded; the caller frees the call. */
static int run_lease_call(struct worker *w, const char *name, vigil_call *call, int64_t lease,
                          const char *lock, const char *held)
{
    struct line l;
    line_open(&l);
    vigil_call_set_timeout(call, CALL_TIMEOUT_MS);
    int64_t begin = now();
    int code = vigil_call_run(call);
    print_outcome(l.out, w, name, begin, call);
    const vigil_lease_grant_response *grant = vigil_lease_grant_result(call);
    const vigil_lock_response *locked = vigil_lock_result(call);
    fprintf(l.out, ",\"lease\":%" PRId64 ",\"ttl\":%" PRId64 ",\"lock\":\"%s\"", lease,
            grant ? grant->ttl : 0, lock);
    if (locked)
        fprintf(l.out, ",\"held\":\"%.*s\"}", VIGIL_ARGS(locked->key));
    else
        fprintf(l.out, ",\"held\":\"%s\"}", held);
    line_close(&l);
    w->count++;
    return code == VIGIL_OK;
}

static int grant(struct worker *w, int ttl, int64_t *ret_id)
{
    int64_t id = ((int64_t)(w->number + 1) << 40) | ++w->count;
    vigil_call *call = vigil_lease_grant(w->client, ttl, id);
    int granted = run_lease_call(w, "grant", call, id, "", "");
    vigil_call_free(call);
    *ret_id = id;
    return granted;
}

static void end_lease(struct worker *w, int64_t id)
{
    vigil_call *call = vigil_lease_revoke(w->client, id);
    (void)run_lease_call(w, "revoke", call, id, "", "");
    vigil_call_free(call);
}

/* Puts keys under a lease that is then revoked, or left to expire. */
static void use_lease(struct worker *w)
{
    int64_t id;
    if (!grant(w, 1 + chance(w, 2), &id))
        return;
    for (int i = 0; i < 2; i++) {
        struct step s = {.name = "put with lease", .then_count = 1};
        char key[KEY_BYTES];
        snprintf(key, sizeof(key), "l/%" PRIx64 "/%d", (uint64_t)id, i);
        s.then[0] = action_of(w, "put", key);
        s.then[0].lease = id;
        (void)run_step(w, &s);
        w->count++;
    }
    if (chance(w, 2))
        end_lease(w, id);
}

static void use_lock(struct worker *w)
{
    int64_t id;
    char name[KEY_BYTES], key[KEY_BYTES] = "";
    if (!grant(w, 2, &id))
        return;
    snprintf(name, sizeof(name), "k/%" PRId64, cell_now(w) / 4);
    vigil_call *lock = vigil_lock(w->client, vigil_text(name), id);
    int locked = run_lease_call(w, "lock", lock, id, name, "");
    if (locked)
        snprintf(key, sizeof(key), "%.*s", VIGIL_ARGS(vigil_lock_result(lock)->key));
    vigil_call_free(lock);
    if (locked && chance(w, 4) != 0) {
        rest_ms(1 + chance(w, 5));
        vigil_call *unlock = vigil_unlock(w->client, vigil_text(key));
        (void)run_lease_call(w, "unlock", unlock, 0, "", key);
        vigil_call_free(unlock);
    }
    end_lease(w, id);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    while (now() < w->end) {
        struct step s;
        int dice = chance(w, 1000);
        w->count++;
        if (dice < 6) {
            use_lease(w);
        } else if (dice < 10) {
            use_lock(w);
        } else {
            make_step(w, cell_now(w), &s);
            if (!run_step(w, &s))
                rest_ms(20);
        }
    }
    return NULL;
}

/* -- The watch -- */

/* Everything up to this revision was received. */
static _Atomic int64_t reached;

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    static const char *const names[] = {"created", "events", "progress", "ended"};
    struct line l;
    (void)watch;
    (void)user;
    if (batch->what != VIGIL_WATCH_ENDED && batch->revision > reached)
        reached = batch->revision;
    line_open(&l);
    fprintf(l.out, "{\"watch\":\"%s\",\"revision\":%" PRId64 ",\"events\":[", names[batch->what],
            batch->header ? batch->header->revision : batch->revision);
    for (size_t i = 0; i < batch->event_count; i++) {
        fprintf(l.out, "%s{\"delete\":%s,\"kv\":", i > 0 ? "," : "",
                batch->events[i].type == VIGIL_DELETE ? "true" : "false");
        print_kv(l.out, batch->events[i].kv);
        fputc('}', l.out);
    }
    fputs("]}", l.out);
    line_close(&l);
    return VIGIL_WATCH_CONTINUE;
}

static vigil_watch *watch_all(vigil_client *client)
{
    vigil_watch_options options;
    vigil_watch *watch;
    vigil_watch_options_init(&options);
    options.key = vigil_text("h/");
    options.prefix = 1;
    options.revision = 1;
    return vigil_watch_new(client, &options, on_batch, NULL, &watch) == VIGIL_OK ? watch : NULL;
}

/* Waits until the watch has received everything up to the revision that the harness sends. */
static int settle(vigil_watch *watch)
{
    char text[64];
    printf("done\n");
    fflush(stdout);
    if (!fgets(text, sizeof(text), stdin))
        return 0;
    int64_t wanted = strtoll(text, NULL, 10);
    for (int64_t end = now() + SETTLE_SECONDS * (int64_t)1000000000; now() < end; rest_ms(50)) {
        if (reached >= wanted)
            return 1;
        vigil_watch_request_progress(watch);
    }
    return 0;
}

static vigil_client *client_of(const char *endpoint)
{
    vigil_options options;
    vigil_client *client;
    vigil_options_init(&options);
    options.endpoints = endpoint;
    options.backoff_max_ms = 200;
    options.keepalive_ms = 6000;
    options.keepalive_timeout_ms = 3000;
    if (vigil_client_new(&options, &client, NULL) != VIGIL_OK)
        abort();
    return client;
}

int main(int argc, char **argv)
{
    static struct worker workers[CLIENTS_MAX];
    if (argc != 6 || atoi(argv[4]) > CLIENTS_MAX) {
        fprintf(stderr, "usage: histories_client ENDPOINT START SECONDS CLIENTS SEED\n");
        return 2;
    }
    int64_t start = strtoll(argv[2], NULL, 10);
    int64_t end = start + strtoll(argv[3], NULL, 10) * 1000000000;
    int count = atoi(argv[4]);
    vigil_client *watcher = client_of(argv[1]);
    vigil_watch *watch = watch_all(watcher);
    for (int i = 0; i < count; i++) {
        workers[i] = (struct worker){.client = client_of(argv[1]),
                                     .number = i,
                                     .start = start,
                                     .end = end,
                                     .seed = (unsigned)(atoi(argv[5]) + i)};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            abort();
    }
    while (now() < end) {
        rest_ms(300);
        vigil_watch_request_progress(watch);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        vigil_client_free(workers[i].client);
    }
    int settled = watch && settle(watch);
    vigil_watch_free(watch);
    vigil_client_free(watcher);
    return settled ? 0 : 1;
}
