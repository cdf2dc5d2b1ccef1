#include "load/options.h"

#include "load/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum kind { KIND_TEXT, KIND_FILE, KIND_CHOICE, KIND_NUMBER, KIND_TIME, KIND_SWITCH };

struct flag {
    const char *name;
    enum kind kind;
    size_t at; /* offset of the field in struct bench_options */
    uint64_t min, max;
    const char *help; /* KIND_CHOICE: begins with "one|two:"; the field gets the index */
};

#define AT(field) offsetof(struct bench_options, field)
#define HOUR_NS UINT64_C(3600000000000)

static const struct flag flags[] = {
    {"endpoint", KIND_TEXT, AT(endpoint), 0, 0,
     "host:port of the server, or https://host:port; kube-scale: several, with commas"},
    {"cacert", KIND_FILE, AT(cacert), 0, 0, "TLS: whose signature the server must have, PEM"},
    {"cert", KIND_FILE, AT(cert), 0, 0, "TLS: certificate to show, PEM"},
    {"key", KIND_FILE, AT(key), 0, 0, "TLS: its key, PEM"},
    {"token", KIND_TEXT, AT(token), 0, 0,
     "who we are: what Authenticate has answered; kube: a bearer token"},
    {"insecure", KIND_SWITCH, AT(insecure), 0, 0, "TLS: take any server"},
    {"connections", KIND_NUMBER, AT(connections), 1, BENCH_CONNECTIONS_MAX, "connections to open"},
    {"pipeline", KIND_NUMBER, AT(pipeline), 1, BENCH_PIPELINE_MAX,
     "calls in flight on each connection"},
    {"threads", KIND_NUMBER, AT(threads), 1, BENCH_THREADS_MAX, "threads that make the load"},
    {"total", KIND_NUMBER, AT(total), 0, UINT64_C(1) << 40, "calls to make; 0: go by time"},
    {"duration", KIND_TIME, AT(duration_ns), 1000000, HOUR_NS, "measured time"},
    {"warmup", KIND_TIME, AT(warmup_ns), 0, HOUR_NS, "time before it, not measured"},
    {"key-space", KIND_NUMBER, AT(key_space), 1, BENCH_KEY_SPACE_MAX, "number of different keys"},
    {"keys", KIND_CHOICE, AT(keys), 0, 0,
     "sequential|random|shuffled: order of the keys; watch does not shuffle them"},
    {"prefix", KIND_TEXT, AT(prefix), 0, 0, "what every key begins with"},
    {"value-size", KIND_NUMBER, AT(value_bytes), 0, BENCH_VALUE_BYTES_MAX, "bytes of a value"},
    {"prepare", KIND_SWITCH, AT(prepare), 0, 0,
     "first put every key, then again in random order (get, list); first put the history "
     "(catchup)"},
    {"streams", KIND_NUMBER, AT(streams), 0, BENCH_PIPELINE_MAX, "watch streams per connection"},
    {"watchers", KIND_NUMBER, AT(watchers), 1, 1000000, "watchers on each stream"},
    {"watch-keys", KIND_CHOICE, AT(watch_keys), 0, 0,
     "prefix|one|own: what a watcher watches: the whole prefix, one key for all, or an own key for "
     "each"},
    {"behind", KIND_TEXT, AT(behind), 0, 0,
     "watch: on each stream one more watcher, of this prefix and from --from on; until it has "
     "--total events"},
    {"from", KIND_NUMBER, AT(from), 0, INT64_MAX,
     "catchup: watch --total events that are there from this revision on; 0: put them first"},
    {"again", KIND_SWITCH, AT(again), 0, 0, "catchup: again and again until --duration is over"},
    {"await-events", KIND_SWITCH, AT(await_events), 0, 0,
     "watch: a put is in flight until its events have come, too"},
    {"nodes", KIND_NUMBER, AT(nodes), 1, 1000000,
     "kube: nodes that the pods are on; a watch is of one; as when they were loaded. kube-scale: "
     "nodes to simulate"},
    {"configs", KIND_SWITCH, AT(configs), 0, 0,
     "kube-watch: ConfigMaps instead of pods; a watch is of one by its name"},
    {"pods", KIND_SWITCH, AT(pods), 0, 0,
     "kube-renew: patches of the status of a pod of each node instead of renewals of its Lease"},
    {"users", KIND_NUMBER, AT(users), 0, 1000000,
     "kube-watch, kube-start: users of the connections, in turn; their tokens are that of --token "
     "and ten digits; 0: one, with that of --token"},
    {"spread", KIND_SWITCH, AT(spread), 0, 0,
     "kube-watch: the watches of a node are on different connections"},
    {"stopped", KIND_NUMBER, AT(stopped), 0, BENCH_CONNECTIONS_MAX,
     "kube-watch: more connections, each with a watch of all pods, that do not read"},
    {"object", KIND_FILE, AT(object), 0, 0,
     "kube-load: create objects like the one in this file, JSON, instead of pods; the ten zeros in "
     "its name are the number of the object"},
    {"path", KIND_TEXT, AT(path), 0, 0, "kube-load: path of the resource of these objects"},
    {"rate", KIND_NUMBER, AT(rate), 0, 100000000,
     "puts per second while watching, rounds per second of --again, renewals per second; 0: all it "
     "can"},
    {"pod-count", KIND_NUMBER, AT(pod_count), 0, 10000000,
     "kube-scale: pods on all nodes; 0: as many as nodes"},
    {"churn", KIND_NUMBER, AT(churn), 0, 10000000,
     "kube-scale: writes about pods per second for 100,000 nodes; seven are the life of a pod"},
    {"services", KIND_NUMBER, AT(services), 0, 1000000,
     "kube-scale: services, and as many endpoint slices, each about 1 KB"},
    {"service-interval", KIND_TIME, AT(service_interval_ns), 1000000, HOUR_NS,
     "kube-scale: after which each service and endpoint slice is changed again"},
    {"start-rate", KIND_NUMBER, AT(start_rate), 1, 1000000,
     "kube-scale: nodes that are started per second"},
    {"nodes-per-connection", KIND_NUMBER, AT(nodes_per_connection), 1, 1000,
     "kube-scale: nodes that share a connection"},
    {"restart", KIND_NUMBER, AT(restart), 0, 1000000,
     "kube-scale: nodes that close everything and come back at once"},
    {"restart-at", KIND_TIME, AT(restart_at_ns), 0, HOUR_NS,
     "kube-scale: when they do, after the measured time has begun"},
    {"series", KIND_FILE, AT(series), 0, 0,
     "kube-scale: write one line of JSON for each second to this file"},
    {"server-pid", KIND_NUMBER, AT(server_pid), 0, 0x7fffffff,
     "process whose CPU and memory is read; 0: none"},
    {"store-pid", KIND_NUMBER, AT(store_pid), 0, 0x7fffffff,
     "process in which the server keeps its data, counted with it; 0: none"},
    {"fail-every", KIND_NUMBER, AT(fail_every), 0, UINT64_MAX,
     "sink: answer every nth with an error"},
    {"json", KIND_SWITCH, AT(json), 0, 0, "print one JSON object"},
    {"help", KIND_SWITCH, AT(help), 0, 0, "print this"},
};

static void *field_of(const struct flag *flag, struct bench_options *options)
{
    return (char *)options + flag->at;
}

static const struct flag *find_flag(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        if (slice_equal(name, slice_from_text(flags[i].name)))
            return &flags[i];
    }
    return NULL;
}

static bool unit_of(const char *text, uint64_t *ret_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}};
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (strcmp(text, units[i].name) == 0) {
            *ret_ns = units[i].ns;
            return true;
        }
    }
    return false;
}

static bool parse_time(const char *text, uint64_t *ret_ns)
{
    char *end;
    uint64_t unit;
    double number = strtod(text, &end);
    if (end == text || !(number >= 0 && number < 1e9) || !unit_of(end, &unit))
        return false;
    *ret_ns = (uint64_t)(number * (double)unit);
    return true;
}

static bool parse_number(const char *text, uint64_t *ret_number)
{
    char *end;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (end == text || *end || errno || text[0] == '-')
        return false;
    *ret_number = number;
    return true;
}

/* The choice of this index; empty: there are fewer. */
static struct slice choice_at(const struct flag *flag, uint64_t index)
{
    struct slice rest = slice_of(flag->help, strcspn(flag->help, ":"));
    struct slice choice = slice_cut(&rest, '|');
    for (; index > 0; index--)
        choice = slice_cut(&rest, '|');
    return choice;
}

static bool parse_choice(const struct flag *flag, const char *text, uint64_t *ret_index)
{
    struct slice choice;
    for (uint64_t i = 0; (choice = choice_at(flag, i)).len > 0; i++) {
        if (slice_equal(choice, slice_from_text(text))) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static enum status set(const struct flag *flag, const char *text, struct bench_options *options,
                       struct error *error)
{
    if (flag->kind == KIND_TEXT || flag->kind == KIND_FILE) {
        *(const char **)field_of(flag, options) = text;
        return ST_OK;
    }
    if (flag->kind == KIND_CHOICE) {
        if (!parse_choice(flag, text, field_of(flag, options)))
            return error_set(error, ST_INVALID, "--%s: %s is not one of %.*s", flag->name, text,
                             (int)strcspn(flag->help, ":"), flag->help);
        return ST_OK;
    }
    uint64_t number;
    bool ok = flag->kind == KIND_TIME ? parse_time(text, &number) : parse_number(text, &number);
    if (!ok)
        return error_set(error, ST_INVALID, "--%s: %s is no %s", flag->name, text,
                         flag->kind == KIND_TIME ? "time, write it like 500ms or 5s" : "number");
    if (number < flag->min || number > flag->max)
        return error_set(error, ST_INVALID, "--%s: %s is not from %" PRIu64 " to %" PRIu64 "%s",
                         flag->name, text, flag->min, flag->max,
                         flag->kind == KIND_TIME ? " ns" : "");
    *(uint64_t *)field_of(flag, options) = number;
    return ST_OK;
}

enum status bench_options_read(int argc, char **argv, struct bench_options *options,
                               struct error *error)
{
    for (int i = 0; i < argc; i++) {
        const char *name = argv[i];
        if (strncmp(name, "--", 2) != 0)
            return error_set(error, ST_INVALID, "%s is not a flag; flags begin with --", name);
        name += 2;
        const char *equal = strchrnul(name, '=');
        const struct flag *flag = find_flag(slice_of(name, (size_t)(equal - name)));
        if (!flag)
            return error_set(error, ST_INVALID, "there is no flag %s", argv[i]);
        if (flag->kind == KIND_SWITCH && !*equal) {
            *(bool *)field_of(flag, options) = true;
            continue;
        }
        if (flag->kind == KIND_SWITCH)
            return error_set(error, ST_INVALID, "--%s takes no value", flag->name);
        if (!*equal && i + 1 == argc)
            return error_set(error, ST_INVALID, "--%s needs a value", flag->name);
        TRY(set(flag, *equal ? equal + 1 : argv[++i], options, error));
    }
    return ST_OK;
}

/* As the flag takes it. */
static void print_time(uint64_t ns)
{
    char text[32];
    snprintf(text, sizeof(text), "%gs", (double)ns / 1e9);
    printf("%-16s", text);
}

void bench_options_print(const struct bench_options *options)
{
    struct bench_options copy = *options;
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        const struct flag *flag = &flags[i];
        void *field = field_of(flag, &copy);
        printf("  --%-12s ", flag->name);
        if (flag->kind == KIND_TEXT || flag->kind == KIND_FILE)
            printf("%-16s", *(const char **)field);
        else if (flag->kind == KIND_CHOICE)
            printf("%-16.*s", SLICE_ARGS(choice_at(flag, *(uint64_t *)field)));
        else if (flag->kind == KIND_SWITCH)
            printf("%-16s", "");
        else if (flag->kind == KIND_TIME)
            print_time(*(uint64_t *)field);
        else
            printf("%-16" PRIu64, *(uint64_t *)field);
        printf(" %s\n", flag->help);
    }
}

void bench_write_roff(const char *text, FILE *to)
{
    for (; *text; text++)
        fputs(*text == '-' ? "\\-" : (char[]){*text, 0}, to);
}

void bench_options_write_man(FILE *to)
{
    static const char *const values[] = {
        [KIND_TEXT] = " TEXT", [KIND_FILE] = " FILE",     [KIND_CHOICE] = " CHOICE",
        [KIND_NUMBER] = " N",  [KIND_TIME] = " DURATION", [KIND_SWITCH] = "",
    };
    fprintf(to, ".SH OPTIONS\n");
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        const struct flag *flag = &flags[i];
        fprintf(to, ".TP\n.B \\-\\-");
        bench_write_roff(flag->name, to);
        fprintf(to, "%s\n", values[flag->kind]);
        bench_write_roff(flag->help, to);
        fputc('\n', to);
    }
}

static void complete_value(const struct flag *flag, const char *current, FILE *to)
{
    struct slice choice;
    for (uint64_t i = 0; flag->kind == KIND_CHOICE && (choice = choice_at(flag, i)).len > 0; i++)
        if (slice_has_prefix(choice, slice_from_text(current)))
            fprintf(to, "%.*s\n", SLICE_ARGS(choice));
    fprintf(to, flag->kind == KIND_FILE ? ":f\n" : ":\n");
}

void bench_options_complete(const char *previous, const char *current, FILE *to)
{
    const struct flag *flag =
        strncmp(previous, "--", 2) == 0 ? find_flag(slice_from_text(previous + 2)) : NULL;
    if (flag && flag->kind != KIND_SWITCH) {
        complete_value(flag, current, to);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        char name[32];
        snprintf(name, sizeof(name), "--%s", flags[i].name);
        if (strncmp(name, current, strlen(current)) == 0)
            fprintf(to, "%s\t%s\n", name, flags[i].help);
    }
    fprintf(to, ":\n");
}
