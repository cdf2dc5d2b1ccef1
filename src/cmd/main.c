/* `vigil COMMAND`; started under the name etcd or kube-apiserver, the program is the server itself,
 * and under the name etcdctl its command line client. */
#include "base/version.h"
#include "cmd/cel/cel.h"
#include "cmd/complete/complete.h"
#include "cmd/completion_script.h"
#include "cmd/ctl/ctl.h"
#include "cmd/ctl/help.h"
#include "cmd/ctl/suggest.h"
#include "cmd/import.h"
#include "cmd/kube/kube.h"
#include "cmd/names/apiserver.h"
#include "cmd/names/assets.h"
#include "cmd/repair.h"
#include "cmd/salvage.h"
#include "cmd/serve/options/options.h"
#include "cmd/serve/serve.h"

enum { EXIT_OK = 0, EXIT_USAGE = 2 };

struct command {
    const char *name;
    const char *help;
    int (*run)(int count, char **args); /* args[0] is the name of the command */
    const char *usage; /* its arguments; NULL: it has flags, and shows them itself */
};

#define MAN_PAGES "vigil|serve|etcd|import|snapshot|repair|salvage|kube-watch|cel|pages|markdown"
#define MAN_USAGE "[" MAN_PAGES "]"
#define COMPLETION_USAGE "bash|zsh|fish"

static int run_serve(int count, char **args)
{
    return serve_main(count - 1, args + 1, &(struct serve_how){SERVE_AS_VIGIL, "", ""});
}

static int run_version(int count, char **args)
{
    (void)count;
    (void)args;
    printf("vigil %s\n", VIGIL_VERSION);
    return EXIT_OK;
}

static void write_overview(void); /* vigil(1) */

static int run_man(int count, char **args)
{
    static const struct {
        const char *name;
        const struct options_table *table;
    } pages[] = {
        {"serve", &serve_table},           {"etcd", &serve_etcd_table}, {"import", &import_table},
        {"snapshot", &snapshot_table},     {"repair", &repair_table},   {"salvage", &salvage_table},
        {"kube-watch", &kube_watch_table}, {"cel", &cel_table},
    };
    const char *page = count < 2 ? "serve" : args[1];
    if (count == 2 && strcmp(page, "markdown") == 0) {
        printf("# Flags\n\n`make docs` writes this page from the table of flags; do not edit it. "
               "Every flag can also be set as an environment variable\n(`--foo-bar` as "
               "`VIGIL_FOO_BAR` or "
               "`ETCD_FOO_BAR`) and as a key of the file that `--config-file` names. Defaults and\n"
               "meanings that differ from etcd are listed in "
               "[compatibility-etcd.md](compatibility-etcd.md#flags-files-and-the-log).\n");
        options_write_markdown(&serve_table, stdout);
        return EXIT_OK;
    }
    if (count == 2 && strcmp(page, "vigil") == 0) {
        write_overview();
        return EXIT_OK;
    }
    if (count == 2 && strcmp(page, "pages") == 0) {
        /* The pages of the client's commands, one a line; they are in section 1. */
        char name[64];
        for (size_t i = 0; ctl_man_page(i, name, sizeof(name)), *name; i++)
            printf("%s\n", name);
        return EXIT_OK;
    }
    for (size_t i = 0; count <= 2 && i < COUNT_OF(pages); i++) {
        if (strcmp(page, pages[i].name) == 0) {
            options_write_man(pages[i].table, "vigil " VIGIL_VERSION, VIGIL_DATE, stdout);
            return EXIT_OK;
        }
    }
    if (count == 2 && ctl_write_man(page, "vigil " VIGIL_VERSION, VIGIL_DATE, stdout))
        return EXIT_OK;
    fprintf(stderr, "usage: vigil man " MAN_USAGE "\n");
    return EXIT_USAGE;
}

static int run_completion(int count, char **args);
static int run_help(int count, char **args);

static const struct command commands[] = {
    {"serve", "serve etcd's and Kubernetes' API from a data directory", run_serve, NULL},
    {"import", "make a data directory from one of etcd, or from a snapshot", import_main, NULL},
    {"snapshot", "restore a snapshot, or show what it contains", snapshot_main, NULL},
    {"repair", "show what a damaged data directory has lost, and accept the loss", repair_main,
     NULL},
    {"salvage", "copy what can be read of a damaged data directory into a new one", salvage_main,
     NULL},
    {"kube", "watch a Kubernetes API server: vigil kube watch RESOURCE", kube_main, NULL},
    {"cel", "evaluate or check an expression of the language CEL", cel_main, NULL},
    {"assets", "make the directory that envtest takes as KUBEBUILDER_ASSETS, and print it",
     assets_main, "[DIR]"},
    {"version", "print the version", run_version, ""},
    {"man",
     "write a manual page (roff): vigil, serve, etcd, import, snapshot, repair, salvage, "
     "kube-watch, cel, get …",
     run_man, MAN_USAGE},
    {"completion", "write a completion script: bash, zsh or fish", run_completion,
     COMPLETION_USAGE},
    {"help", "show this, or the flags of a command", run_help, "[COMMAND]"},
};

static void write_usage(FILE *to)
{
    fprintf(
        to,
        "Vigil keeps versioned keys on disk and serves etcd's and Kubernetes' API from them.\n\n"
        "Usage:\n  vigil COMMAND [flags]\n\nCommands:\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        fprintf(to, "  %-23s %s\n", commands[i].name, commands[i].help);
    ctl_write_commands(CTL_VIGIL, to);
    fprintf(to, "\nvigil help COMMAND shows the flags of a command. Begin with: vigil serve\n");
}

static void write_overview(void)
{
    printf(
        ".TH \"VIGIL\" 1 \"%s\" \"vigil %s\"\n"
        ".SH NAME\nvigil \\- a server that speaks the APIs of etcd and Kubernetes\n"
        ".SH SYNOPSIS\n.B vigil\nCOMMAND [\\fIflags\\fR]\n"
        ".SH DESCRIPTION\nVigil keeps versioned keys on disk and serves the v3 API of etcd and "
        "the list\\-watch API of Kubernetes from them. Started under the name etcd or "
        "kube\\-apiserver, it takes the flags of that program and serves at once; under the name "
        "etcdctl, it is the client of the "
        "commands "
        "below that etcdctl has, with its output.\n.SH COMMANDS\n",
        VIGIL_DATE, VIGIL_VERSION);
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        printf(".TP\n.B %s\n%s\n", commands[i].name, commands[i].help);
    ctl_write_man_commands(stdout);
    printf(".SH EXIT STATUS\n"
           ".TP\n0\nThe command succeeded.\n"
           ".TP\n1\nIt failed; the last line says why.\n"
           ".TP\n2\nThe command or a flag is unknown.\n"
           ".SH EXAMPLES\n.nf\n"
           "vigil serve \\-\\-data\\-dir /var/lib/vigil\n"
           "vigil import \\-\\-data\\-dir /var/lib/vigil /var/lib/etcd/default\n.fi\n"
           ".SH SEE ALSO\n"
           "vigil\\-bench(1), vigil\\-serve(8), vigil\\-import(8), vigil\\-snapshot(8), "
           "vigil\\-repair(8), "
           "vigil\\-salvage(8), "
           "vigil\\-kube\\-watch(8), vigil\\-cel(8)");
    char name[64];
    for (size_t i = 0; ctl_man_page(i, name, sizeof(name)), *name; i++)
        printf(", vigil\\-%s(1)", name);
    printf("\n");
}

static const struct command *find_command(const char *name);
static bool is_for_client(const struct command *command, int count, char **args);

static int refuse_command(const char *name)
{
    struct slice names[CTL_SUGGESTIONS_MAX + COUNT_OF(commands)];
    size_t count = ctl_suggest(name, CTL_VIGIL, names);
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        if (ctl_resembles(name, slice_from_text(commands[i].name)))
            names[count++] = slice_from_text(commands[i].name);
    /* Older scripts may still call the load generator as a command of this program. */
    if (strcmp(name, "bench") == 0) {
        fprintf(stderr, "vigil: the load generator is a program of its own: vigil-bench\n");
        return EXIT_USAGE;
    }
    fprintf(stderr, "vigil: there is no command '%.100s'.", name);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "%s%.*s", i ? ", " : " Did you mean this: ", SLICE_ARGS(names[i]));
    fprintf(stderr, "%s See vigil --help.\n", count ? "?" : "");
    return EXIT_USAGE;
}

/* vigil help COMMAND is vigil COMMAND --help. */
static int run_help(int count, char **args)
{
    const struct command *command = find_command(count > 1 ? args[1] : "help");
    if (count > 1 && is_for_client(command, count - 1, args + 1))
        return ctl_main(count, args, CTL_VIGIL);
    if (!command)
        return refuse_command(args[1]);
    /* These commands write their help from their table of flags. */
    if (!command->usage) {
        char *help[] = {args[1], "--help", NULL};
        return command->run(2, help);
    }
    if (command->run == run_help)
        write_usage(stdout);
    else
        printf("vigil %s: %s\n\nusage: vigil %s %s\n", command->name, command->help, command->name,
               command->usage);
    return EXIT_OK;
}

static int run_completion(int count, char **args)
{
    if (count == 2 && completion_script_write(args[1], "vigil", stdout))
        return EXIT_OK;
    fprintf(stderr, "usage: vigil completion " COMPLETION_USAGE "\n");
    return EXIT_USAGE;
}

static int write_candidates(const struct complete_commands *others, int count, char **args)
{
    /* The shell calls this while the user types: a prompt for a password must not wait for an
     * answer, and a message must not appear in the middle of the line. */
    if (freopen("/dev/null", "r", stdin) && freopen("/dev/null", "w", stderr))
        complete_write(others, count - 1, args + 1, stdout);
    return EXIT_OK;
}

/* For the completion scripts; not a command for users. */
static int run_complete(int count, char **args)
{
    static const struct {
        const char *name;
        const struct options_table *table;
        const char *words;
    } details[] = {
        {"serve", &serve_table, NULL},
        {"import", &import_table, "FILE"},
        {"snapshot", &snapshot_table, "restore|status"},
        {"repair", &repair_table, NULL},
        {"salvage", &salvage_table, "FILE"},
        {"kube", &kube_watch_table, "watch"},
        {"cel", &cel_table, "eval|check"},
        {"man", NULL, MAN_PAGES},
        {"completion", NULL, COMPLETION_USAGE},
    };
    struct complete_command all[COUNT_OF(commands)] = {0};
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        all[i] = (struct complete_command){.name = commands[i].name, .help = commands[i].help};
        for (size_t k = 0; k < COUNT_OF(details); k++) {
            if (strcmp(details[k].name, all[i].name) == 0) {
                all[i].table = details[k].table;
                all[i].words = details[k].words;
            }
        }
    }
    struct complete_commands others = {all, COUNT_OF(all), CTL_VIGIL};
    return write_candidates(&others, count, args);
}

static int run_etcdctl(int count, char **args)
{
    static const struct complete_command help = {.name = "help", .help = "Shows the flags"};
    struct complete_commands others = {&help, 1, ctl_etcdctl_style()};
    if (count > 0 && strcmp(args[0], "__complete") == 0)
        return write_candidates(&others, count, args);
    return ctl_main(count, args, others.style);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-help") == 0;
}

static const struct command *find_command(const char *name)
{
    if (asks_for_help(name))
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static bool is_named(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, name) == 0;
}

/* `vigil snapshot save` is the client's, `vigil snapshot restore` is not. */
static bool is_for_client(const struct command *command, int count, char **args)
{
    unsigned words = ctl_has(count, args);
    return command ? words > 1 : words > 0 || strcmp(args[0], "options") == 0;
}

int main(int argc, char **argv)
{
    if (argc > 0 && is_named(argv[0], "etcd"))
        return serve_main(argc - 1, argv + 1, &(struct serve_how){SERVE_AS_ETCD, "", ""});
    if (argc > 0 && is_named(argv[0], "kube-apiserver"))
        return apiserver_main(argc - 1, argv + 1);
    if (argc > 0 && is_named(argv[0], "etcdctl"))
        return run_etcdctl(argc - 1, argv + 1);
    if (argc < 2) {
        write_usage(stderr);
        return EXIT_USAGE;
    }
    /* The completion scripts call this, with the words that are on the line so far. */
    if (strcmp(argv[1], "__complete") == 0)
        return run_complete(argc - 1, argv + 1);
    const struct command *command = find_command(argv[1]);
    /* The client's commands come first: `snapshot save` begins with the name of a command of this
     * table. */
    if (is_for_client(command, argc - 1, argv + 1))
        return ctl_main(argc - 1, argv + 1, CTL_VIGIL);
    if (!command)
        return refuse_command(argv[1]);
    /* Commands without a table of flags cannot answer --help themselves. */
    if (command->usage && argc > 2 && asks_for_help(argv[2]))
        return run_help(2, argv);
    return command->run(argc - 1, argv + 1);
}
