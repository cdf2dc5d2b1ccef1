/* The syntax of the lines that txn and watch read from standard input. */
#ifndef VIGIL_CMD_CTL_KV_WORDS_H
#define VIGIL_CMD_CTL_KV_WORDS_H

#include "base/memory/arena.h"

enum { LINE_WORDS_MAX = 1024 };

/* The words of a line; quoted ones, "…" with Go's escapes or '…', may contain spaces. A zero byte is
 * a character like others. False: the quotes or escapes of a word are wrong, or there are too many
 * words. They are in the arena, each followed by a zero byte. */
struct line_words {
    const char *words[LINE_WORDS_MAX];
    size_t lens[LINE_WORDS_MAX];
    size_t count;
};
MUST_CHECK
bool line_split(struct arena *arena, struct slice line, struct line_words *ret_words);

/*
 * A text at the beginning of *at in double or back quotes, with Go's escapes. Moves *at behind it.
 * There is a zero byte at the end of the line. False: there is no such text. In the arena.
 */
MUST_CHECK
bool line_quoted(struct arena *arena, const char **at, const char *end, struct slice *ret_text);

#endif
