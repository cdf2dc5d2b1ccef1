# vigil_library(NAME LAYER): libNAME.so and libNAME.a from a layer and what it uses of those below.
# Only the symbols of src/LAYER/libNAME.map are visible, and its memory functions can be replaced
# (src/client/api/allocator.c).
function(vigil_library name layer)
    set(map ${CMAKE_SOURCE_DIR}/src/${layer}/lib${name}.map)
    set(wraps --wrap=malloc --wrap=calloc --wrap=realloc --wrap=free --wrap=aligned_alloc --wrap=strdup)
    get_target_property(uses vigil_${layer} LINK_LIBRARIES)
    list(TRANSFORM wraps PREPEND -Wl, OUTPUT_VARIABLE link_wraps)
    # A library needs a source of its own.
    file(CONFIGURE OUTPUT generated/nothing.c CONTENT "")
    add_library(lib${name} SHARED ${CMAKE_BINARY_DIR}/generated/nothing.c)
    target_include_directories(lib${name} INTERFACE ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(lib${name} PRIVATE -Wl,--whole-archive vigil_${layer}
                          -Wl,--no-whole-archive ${uses} ssl crypto)
    target_link_options(lib${name} PRIVATE -Wl,--version-script=${map} -Wl,--as-needed ${link_wraps})
    set_target_properties(lib${name} PROPERTIES OUTPUT_NAME ${name} VERSION 1.0.0 SOVERSION 1
                          LINK_DEPENDS ${map})

    # One object, in which everything but the public functions is local.
    set(archives ${uses})
    list(FILTER archives INCLUDE REGEX "^vigil_")
    list(TRANSFORM archives REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
    set(object ${CMAKE_BINARY_DIR}/lib${name}.o)
    add_custom_command(
        OUTPUT ${CMAKE_BINARY_DIR}/lib${name}.a
        COMMAND ${CMAKE_LINKER} -r -o ${object} ${wraps} --whole-archive $<TARGET_FILE:vigil_${layer}>
                --no-whole-archive --start-group ${files} --end-group
        COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=vigil_*" ${object}
        COMMAND ${CMAKE_COMMAND} -E rm -f ${CMAKE_BINARY_DIR}/lib${name}.a
        COMMAND ${CMAKE_AR} rcs ${CMAKE_BINARY_DIR}/lib${name}.a ${object}
        DEPENDS vigil_${layer} ${archives}
        VERBATIM)
    add_custom_target(lib${name}_static ALL DEPENDS ${CMAKE_BINARY_DIR}/lib${name}.a)
endfunction()

# vigil_suite(PROGRAM LIBRARY FOLDER): a program from the sources of a folder, over an installed
# library.
function(vigil_suite program library folder)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.c)
    add_executable(${program} ${sources})
    target_link_libraries(${program} PRIVATE ${library})
endfunction()
