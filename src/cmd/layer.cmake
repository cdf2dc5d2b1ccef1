vigil_corpus(cmd config_file)

# The completion scripts, as texts in C for cmd/complete/script.c.
set(texts "/* Made from src/cmd/complete/vigil.bash, vigil.zsh and vigil.fish. */\n")
foreach(shell bash zsh fish)
    set(script ${CMAKE_SOURCE_DIR}/src/cmd/complete/vigil.${shell})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
    file(READ ${script} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\"\n\"" text "${text}")
    string(APPEND texts "static const char ${shell}_script[] =\n\"${text}\";\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/cmd/complete/script_texts.h CONTENT "${texts}" @ONLY)
