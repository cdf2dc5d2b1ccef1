#include "cmd/completion_script.h"

#include "base/macros.h"
#include "cmd/complete/script_texts.h"

#include <string.h>

/* The scripts are those of vigil; the name of the program is also in those of their functions. */
static void write_for(const char *script, const char *program, FILE *to)
{
    static const char name[] = "vigil";
    const char *at;
    for (; (at = strstr(script, name)); script = at + strlen(name))
        fprintf(to, "%.*s%s", (int)(at - script), script, program);
    fputs(script, to);
}

bool completion_script_write(const char *shell, const char *program, FILE *to)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        if (strcmp(shell, scripts[i].shell) == 0) {
            write_for(scripts[i].script, program, to);
            return true;
        }
    }
    return false;
}
