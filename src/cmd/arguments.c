#include "cmd/arguments.h"

enum { EXIT_OK = 0, EXIT_USAGE = 2 };

int words_refuse(const struct words *words, const char *why)
{
    const char *program = words->table->program;
    /* The reader of flags names the help itself if the flag is unknown. */
    if (strstr(why, " --help")) /* an unknown flag */
        fprintf(stderr, "%s: %s\n", program, why);
    else
        fprintf(stderr, "%s: %s. See %s --help.\n", program, why, program);
    return EXIT_USAGE;
}

static int refuse_word(const struct words *words, const char *word)
{
    char why[256];
    snprintf(why, sizeof(why), "unexpected argument \"%.100s\" after %.100s", word,
             words->table->words ? words->table->words : "the flags");
    return words_refuse(words, why);
}

int words_read(struct words *words, int count, char **args)
{
    unsigned found = 0, most = words->word_count_needed + words->word_count_more;
    assert(most <= WORDS_MAX);
    options_init(&words->options, words->table, words->config);
    for (int at = 0; at < count;) {
        int rest;
        struct error error;
        enum status status =
            options_parse_args(&words->options, count - at, args + at, &rest, &error);
        if (status == ST_END) {
            options_write_help(words->table, stdout);
            return EXIT_OK;
        }
        if (status != ST_OK)
            return words_refuse(words, error.text);
        at += rest;
        if (at == count)
            break;
        /* Flags may follow words, as in `vigil import DIR --json`: parsing stops at each word and
         * begins again behind it. */
        if (found == most)
            return refuse_word(words, args[at]);
        words->words[found++] = args[at++];
    }
    if (found < words->word_count_needed) {
        char why[128];
        snprintf(why, sizeof(why), "%s is missing", words->table->words);
        return words_refuse(words, why);
    }
    return -1;
}
