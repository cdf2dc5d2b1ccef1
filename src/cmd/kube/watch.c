#include "base/clock.h"
#include "base/options/rows.h"
#include "cmd/arguments.h"
#include "cmd/kube/event_view.h"
#include "cmd/kube/kube.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <vigil/client.h>
#include <vigil/kube/call.h>
#include <vigil/kube/discovery.h>
#include <vigil/kube/informer.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, OUTPUT_TEXT = 0, OUTPUT_JSON = 1 };

struct watch_flags {
    const char *kubeconfig, *context, *server, *token, *ca_file;
    bool insecure;
    const char *name_space;
    bool all_namespaces;
    const char *selector, *field_selector, *version;
    bool initial_events, no_differences, informer;
    int output;
    int64_t count, interval_ns;
};

static const struct option server_rows[] = {
    FLAG_TEXT("kubeconfig", watch_flags, kubeconfig, "",
              "The kubeconfig file. The default is $KUBECONFIG, then ~/.kube/config, then the "
              "service account of a pod."),
    FLAG_TEXT("context", watch_flags, context, "", "The context of the kubeconfig to use."),
    FLAG_TEXT("server", watch_flags, server, "", "The URL of the server, instead of a kubeconfig."),
    FLAG_TEXT("token", watch_flags, token, "", "A bearer token."),
    FLAG_TEXT("certificate-authority", watch_flags, ca_file, "",
              "A file with the authorities that may have signed the server's certificate."),
    FLAG_BOOL("insecure-skip-tls-verify", watch_flags, insecure,
              "Accept any certificate of the server. Only for tests."),
};

static const struct option watch_rows[] = {
    FLAG_TEXT("namespace", watch_flags, name_space, "",
              "The namespace; -n for short. The default is that of the kubeconfig."),
    FLAG_ALIAS("n", "namespace"),
    FLAG_BOOL("all-namespaces", watch_flags, all_namespaces, "Watch all namespaces; -A for short."),
    FLAG_ALIAS("A", "all-namespaces"),
    FLAG_TEXT("selector", watch_flags, selector, "",
              "Only objects with these labels, for instance app=web,tier!=test; -l for short."),
    FLAG_ALIAS("l", "selector"),
    FLAG_TEXT("field-selector", watch_flags, field_selector, "",
              "Only objects with these fields, for instance spec.nodeName=a."),
    FLAG_TEXT("since", watch_flags, version, "",
              "Only changes after this resourceVersion, continued after breaks. The default is the "
              "state, and then the changes."),
    FLAG_BOOL("initial-events", watch_flags, initial_events,
              "Request a streaming list (sendInitialEvents), whose end the server marks with a "
              "bookmark."),
    FLAG_BOOL("no-diff", watch_flags, no_differences, "Do not show what has changed in an object."),
    FLAG_BOOL(
        "informer", watch_flags, informer,
        "Show what an informer holds and by how much it is behind, once per interval, instead "
        "of the events."),
    FLAG_DURATION("interval", watch_flags, interval_ns, "1s",
                  "With --informer: the time between two lines.",
                  BETWEEN(10 * NS_PER_MS, 3600 * NS_PER_S)),
    FLAG_ENUM("output", watch_flags, output, "text",
              "The format of the output: text for people, or one JSON object per line; -o for "
              "short.",
              "text|json"),
    FLAG_ALIAS("o", "output"),
    FLAG_INT("count", watch_flags, count, "0",
             "End after this many events, or lines with --informer. 0 means never.", NOT_NEGATIVE),
};

static const struct option_group server_group = {"Server", server_rows, COUNT_OF(server_rows)};
static const struct option_group watch_group = {"Watch", watch_rows, COUNT_OF(watch_rows)};
static const struct option_group *const groups[] = {&watch_group, &server_group};

const struct options_table kube_watch_table = {
    .program = "vigil kube watch",
    .summary =
        "Shows the watch protocol of a Kubernetes API server as it happens: types, versions, "
        "bookmarks, ends, and the difference of each object to its last version.",
    .groups = groups,
    .group_count = COUNT_OF(groups),
    .words = "RESOURCE[/NAME]",
    .flags_only = true,
    .man_more =
        ".SH OUTPUT\n"
        "One line per event: the time of its arrival, its type, the key of the object, its "
        "resourceVersion, and how long ago it was changed, as far as the object says so "
        "(managedFields have a precision of one second). Lines below a MODIFIED event show values "
        "that were added (+), removed (-) or changed (~).\n"
        ".PP\n"
        "With --informer: the objects and bytes that the informer holds, the version that it "
        "knows, "
        "by how many versions the server is ahead of it, the time since its last event, and the "
        "number of its requests and failures. Changes of other resources also count as versions, "
        "until a bookmark arrives.\n"
        ".PP\n"
        "A watch that breaks is continued. Standard error says why the server cannot be reached "
        "meanwhile.\n"
        ".SH EXAMPLES\n.nf\n"
        "vigil kube watch pods \\-A\n"
        "vigil kube watch deployments.apps/web \\-n default \\-o json\n"
        "vigil kube watch configmaps \\-\\-informer\n.fi\n"
        ".SH EXIT STATUS\n"
        ".TP\n0\nIt was interrupted, or has shown as many events as it should.\n"
        ".TP\n1\nThe server refused the watch, or cannot be reached; the last line says why.\n"
        ".TP\n2\nA flag is unknown or has an invalid value, or two flags contradict each other.\n",
};

/* What the callbacks and the main thread share. */
struct session {
    const struct watch_flags *flags;
    vigil_kube *kube;
    vigil_kube_watch_options options;
    struct event_view view;
    vigil_kube_watch *watch;
    /* After the state: the version up to which everything was shown, where another watch can begin;
     * "" before. */
    char version[128];
    atomic_bool logs; /* troubles with the connection are reported as they occur */
    int64_t left;     /* events to be shown; 0: no limit */
    atomic_int exit_code;
};

/* Ends the program, which waits for a signal. */
static void finish(struct session *s, int exit_code)
{
    atomic_store(&s->exit_code, exit_code);
    kill(getpid(), SIGTERM);
}

/* -- Events -- */

static int on_event(vigil_kube_watch *watch, const vigil_kube_event *event, void *user);

/* False: the watch is over. */
static bool watch_again(struct session *s, int end)
{
    /* Without a version the state was not complete, and beginning again would show it twice. */
    if (!s->version[0] || end == VIGIL_KUBE_END_REFUSED || end == VIGIL_KUBE_END_ERROR)
        return false;
    vigil_kube_watch_free(s->watch);
    s->watch = NULL;
    s->options.version = s->version;
    s->options.resume = 1;
    s->options.initial_events = 0;
    return vigil_kube_watch_new(s->kube, &s->options, on_event, s, &s->watch) == VIGIL_OK;
}

static int on_event(vigil_kube_watch *watch, const vigil_kube_event *event, void *user)
{
    struct session *s = user;
    (void)watch;
    event_view_show(&s->view, event, clock_real_ns(clock_system()));
    /* The versions of the state have no order; those after it have. */
    if (event->version.size && (event->initial_end || s->version[0]))
        snprintf(s->version, sizeof(s->version), "%.*s", VIGIL_ARGS(event->version));
    if (event->type == VIGIL_KUBE_ENDED) {
        if (!watch_again(s, event->end))
            finish(s, event->end == VIGIL_KUBE_END_COMPLETE ? EXIT_OK : EXIT_FAILED);
        return VIGIL_KUBE_CONTINUE;
    }
    /* An error is not one of the events that --count asked for. */
    if (event->type != VIGIL_KUBE_ERROR && s->left && --s->left == 0) {
        finish(s, EXIT_OK);
        return VIGIL_KUBE_PAUSE;
    }
    return VIGIL_KUBE_CONTINUE;
}

static void on_log(void *user, int level, const char *text)
{
    struct session *s = user;
    if (!atomic_load(&s->logs) || level < VIGIL_LOG_WARN)
        return;
    flockfile(stderr);
    fputs("vigil kube watch: ", stderr);
    for (; *text; text++) /* text of a server, which must not control the terminal */
        putc((unsigned char)*text < ' ' || *text == '\x7f' ? '?' : *text, stderr);
    putc('\n', stderr);
    funlockfile(stderr);
}

static int show_events(struct session *s)
{
    /* Until here the caller has reported failures by itself, and a log line would repeat them. */
    atomic_store(&s->logs, true);
    int code = vigil_kube_watch_new(s->kube, &s->options, on_event, s, &s->watch);
    if (code != VIGIL_OK) {
        fprintf(stderr, "vigil kube watch: %s\n", vigil_code_name(code));
        return EXIT_FAILED;
    }
    sigset_t signals;
    int got;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigwait(&signals, &got);
    return atomic_load(&s->exit_code);
}

/* -- Informer -- */

/* By how many versions the server is ahead; -1: unknown. */
static int64_t versions_behind(struct session *s, const char *known)
{
    /* A list of one object is the cheapest request whose answer has the server's current
     * version. */
    vigil_kube_list_options options = {.size = sizeof(options), .limit = 1};
    vigil_kube_call *call = vigil_kube_list(s->kube, &s->options.target, &options);
    int64_t behind = -1;
    if (vigil_kube_call_run(call) == VIGIL_OK && *known) {
        int64_t newest = strtoll(vigil_kube_call_version(call), NULL, 10);
        behind = newest > strtoll(known, NULL, 10) ? newest - strtoll(known, NULL, 10) : 0;
    }
    vigil_kube_call_free(call);
    return behind;
}

static void show_informer(struct session *s, vigil_kube_informer *informer)
{
    vigil_kube_informer_stats stats;
    vigil_kube_informer_get_stats(informer, &stats, sizeof(stats));
    int64_t behind = versions_behind(s, stats.version);
    int64_t now_ms = clock_real_ns(clock_system()) / NS_PER_MS;
    int64_t quiet_ms = stats.last_event_ms ? now_ms - stats.last_event_ms : -1;
    int synced = vigil_kube_informer_has_synced(informer);
    if (s->flags->output == OUTPUT_JSON) {
        printf("{\"timeMs\":%" PRId64 ",\"synced\":%s,\"objects\":%" PRIu64 ",\"bytes\":%" PRIu64
               ",\"version\":\"%s\",\"versionsBehind\":%" PRId64 ",\"lastEventMs\":%" PRId64
               ",\"lists\":%" PRIu64 ",\"watches\":%" PRIu64 ",\"events\":%" PRIu64
               ",\"bookmarks\":%" PRIu64 ",\"failures\":%" PRIu64 "}\n",
               now_ms, synced ? "true" : "false", stats.objects, stats.bytes, stats.version, behind,
               quiet_ms, stats.lists, stats.watches, stats.events, stats.bookmarks, stats.failures);
    } else {
        char behind_text[32] = "?", quiet_text[32] = "never";
        if (behind >= 0)
            snprintf(behind_text, sizeof(behind_text), "%" PRId64, behind);
        if (quiet_ms >= 0)
            snprintf(quiet_text, sizeof(quiet_text), "%.1f s ago", (double)quiet_ms / 1000);
        printf("%s%" PRIu64 " objects, %" PRIu64 " bytes, version %s, behind by %s"
               ", last event %s, %" PRIu64 " lists, %" PRIu64 " watches, %" PRIu64
               " failures%s%s\n",
               synced ? "" : "not synced: ", stats.objects, stats.bytes,
               stats.version[0] ? stats.version : "-", behind_text, quiet_text, stats.lists,
               stats.watches, stats.failures, stats.last_failure.message[0] ? ", the last: " : "",
               stats.last_failure.message);
    }
    fflush(stdout);
}

/* False: a signal has come. */
static bool pause_for(int64_t ns)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    struct timespec time = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
    return sigtimedwait(&signals, NULL, &time) < 0;
}

static int follow_informer(struct session *s)
{
    vigil_kube_informer *informer;
    vigil_kube_informer_options options;
    vigil_kube_informer_options_init(&options);
    options.target = s->options.target;
    options.label_selector = s->options.label_selector;
    options.field_selector = s->options.field_selector;
    int code = vigil_kube_informer_new(s->kube, &options, &informer);
    if (code != VIGIL_OK) {
        fprintf(stderr, "vigil kube watch: %s\n", vigil_code_name(code));
        return EXIT_FAILED;
    }
    (void)vigil_kube_informer_start(informer);
    while (pause_for(s->flags->interval_ns)) {
        show_informer(s, informer);
        if (s->left && --s->left == 0)
            break;
    }
    vigil_kube_informer_free(informer);
    return EXIT_OK;
}

/* -- What to watch -- */

static const char *given(const char *text)
{
    return text[0] ? text : NULL;
}

/* What the user can do about an error; "" if nothing is known. */
static const char *hint(const vigil_error *error)
{
    if (error->code == VIGIL_ERROR_UNAUTHENTICATED)
        return " (the server does not accept the credentials, or there are none: see --token and "
               "the user of the kubeconfig)";
    if (strstr(error->text, "signed by unknown authority"))
        return " (--certificate-authority names a file with the server's authority)";
    if (strstr(error->text, "connection refused"))
        return " (is the server running, and is this its address?)";
    return "";
}

static int find(struct session *s, const char *name, vigil_kube_resource *ret_resource)
{
    vigil_kube_call *call = vigil_kube_discover(s->kube);
    int code = vigil_kube_call_run(call);
    if (code != VIGIL_OK)
        fprintf(stderr, "vigil kube watch: %s: %s%s\n", vigil_kube_server(s->kube),
                vigil_kube_call_error(call)->text, hint(vigil_kube_call_error(call)));
    else if ((code = vigil_kube_find_resource(s->kube, name, ret_resource)) != VIGIL_OK)
        fprintf(stderr, "vigil kube watch: %s has no resource \"%s\"\n", vigil_kube_server(s->kube),
                name);
    vigil_kube_call_free(call);
    return code;
}

static int watch_resource(struct session *s, const char *word)
{
    static char name[256];
    const struct watch_flags *flags = s->flags;
    const char *slash = strchr(word, '/');
    vigil_kube_resource resource;
    snprintf(name, sizeof(name), "%.*s", slash ? (int)(slash - word) : 255, word);
    if (find(s, name, &resource) != VIGIL_OK)
        return EXIT_FAILED;
    const char *space = !resource.namespaced || flags->all_namespaces ? NULL
                        : flags->name_space[0]                        ? flags->name_space
                                               : vigil_kube_namespace(s->kube);
    vigil_kube_watch_options_init(&s->options);
    s->options.target = vigil_kube_resource_target(&resource, space);
    s->options.target.name = slash ? slash + 1 : NULL;
    s->options.label_selector = given(flags->selector);
    s->options.field_selector = given(flags->field_selector);
    s->options.version = given(flags->version);
    snprintf(s->version, sizeof(s->version), "%s", flags->version);
    s->options.resume = flags->version[0] != '\0' && strcmp(flags->version, "0") != 0;
    s->options.initial_events = flags->initial_events;
    return flags->informer ? follow_informer(s) : show_events(s);
}

static int connect_and_watch(const struct watch_flags *flags, const char *word)
{
    vigil_kube_options options;
    vigil_error error;
    struct session s = {.flags = flags, .left = flags->count};
    vigil_kube_options_init(&options);
    options.kubeconfig = given(flags->kubeconfig);
    options.context = given(flags->context);
    options.server = given(flags->server);
    options.token = given(flags->token);
    options.ca_file = given(flags->ca_file);
    options.insecure_skip_verify = flags->insecure;
    options.log = on_log;
    options.log_user = &s;
    if (vigil_kube_new(&options, &s.kube, &error) != VIGIL_OK) {
        fprintf(stderr, "vigil kube watch: %s\n", error.text);
        return EXIT_FAILED;
    }
    event_view_init(&s.view, stdout);
    s.view.color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    s.view.json = flags->output == OUTPUT_JSON;
    s.view.differences = !flags->no_differences;
    int exit_code = watch_resource(&s, word);
    vigil_kube_free(s.kube);
    vigil_kube_watch_free(s.watch);
    event_view_fini(&s.view);
    return exit_code;
}

/* Why the flags and the word make no sense together; NULL if they do. */
static const char *contradiction(const struct watch_flags *flags, const char *word)
{
    const char *slash = strchr(word, '/');
    if (slash && !slash[1])
        return "the NAME after \"/\" is missing";
    if (flags->version[strspn(flags->version, "0123456789")])
        return "--since must be a resourceVersion, which is a number";
    if (flags->version[0] && flags->initial_events)
        return "--initial-events begins with the state, so it cannot be used with --since";
    if (flags->informer && (flags->version[0] || flags->initial_events))
        return "--informer cannot be used with --since or --initial-events";
    if (flags->informer && slash)
        return "--informer needs a whole collection: use --field-selector metadata.name=NAME";
    return NULL;
}

static int watch_main(int count, char **args)
{
    struct watch_flags flags;
    struct words words = {.table = &kube_watch_table, .config = &flags, .word_count_needed = 1};
    int done = words_read(&words, count - 1, args + 1);
    if (done >= 0)
        return done;
    const char *wrong = contradiction(&flags, words.words[0]);
    if (wrong)
        return words_refuse(&words, wrong);
    /* The main thread waits for them. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    return connect_and_watch(&flags, words.words[0]);
}

int kube_main(int count, char **args)
{
    static char *help[] = {"watch", "--help", NULL};
    if (count > 1 && strcmp(args[1], "watch") == 0)
        return watch_main(count - 1, args + 1);
    if (count > 1 && (strcmp(args[1], "--help") == 0 || strcmp(args[1], "-h") == 0))
        return watch_main(2, help);
    fprintf(stderr, "usage: vigil kube watch RESOURCE[/NAME] [flags]. See vigil kube --help.\n");
    return 2;
}
