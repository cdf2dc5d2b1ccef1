# Warnings, hardening and sanitizers, the same for every target.
add_compile_options(
    -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla $<$<BOOL:${VIGIL_WERROR}>:-Werror>
    -fno-strict-aliasing -fno-common -fstack-protector-strong -fno-omit-frame-pointer)
add_compile_definitions(_GNU_SOURCE)
include_directories(${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_link_options(-Wl,-z,relro,-z,now)

if(VIGIL_SANITIZE)
    add_compile_options(-fsanitize=${VIGIL_SANITIZE} -fno-sanitize-recover=all -O1)
    add_link_options(-fsanitize=${VIGIL_SANITIZE})
    add_compile_definitions(VIGIL_SANITIZED=1)
    # The traces of sanitizers show lines and nothing else of it.
    add_compile_options($<$<C_COMPILER_ID:Clang>:-gline-tables-only>)
else()
    # What tests/tools/hardening_test.py looks for in the program and the libraries.
    include(CheckPIESupported)
    check_pie_supported(LANGUAGES C)
    add_link_options(-Wl,-z,noexecstack)
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-clash-protection)
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        add_compile_options(-fcf-protection=full)
    elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
        add_compile_options(-mbranch-protection=standard)
    endif()
    # So that the libraries contain only the functions that they use.
    add_compile_options(-ffunction-sections -fdata-sections)
endif()
find_package(Threads REQUIRED)
link_libraries(Threads::Threads)
if(VIGIL_COVERAGE)
    add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
    add_link_options(-fprofile-instr-generate)
endif()
if(VIGIL_FUZZ)
    # A fuzzer is blind in code that does not report its branches; every layer does.
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
endif()
if(VIGIL_FUZZ OR VIGIL_COUNT)
    # Every branch is a step that fuzz/cost.c counts; programs without it count nothing.
    add_library(vigil_uncounted STATIC ${CMAKE_SOURCE_DIR}/fuzz/uncounted.c)
    link_libraries(vigil_uncounted)
    add_compile_options(-fsanitize-coverage=trace-pc)
endif()
