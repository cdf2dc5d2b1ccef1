# vigil_library(NAME LAYER WHOLE layer... SOURCES source... USES library...)
#
# Makes libNAME.so and libNAME.a from a layer and what it uses of those below, which stays hidden:
# only the symbols of src/LAYER/libNAME.map are visible. WHOLE are layers below whose functions it
# offers, too. SOURCES are parts that no program contains:
# the memory functions, which can be replaced (src/memory/hooks.h). USES are other libraries, whose
# private symbols it may use; programs that are linked with it are linked with them, too.
function(vigil_library name layer)
    cmake_parse_arguments(ARG "" "" "WHOLE;SOURCES;USES" ${ARGN})
    list(TRANSFORM ARG_WHOLE PREPEND vigil_)
    set(whole vigil_${layer} ${ARG_WHOLE})
    list(TRANSFORM whole REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE whole_files)
    set(map ${CMAKE_SOURCE_DIR}/src/${layer}/lib${name}.map)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${map})
    file(STRINGS ${map} symbols REGEX "^    vigil_[a-z0-9_]+;$")
    list(TRANSFORM symbols REPLACE "^ +(.*);$" "\\1")
    # A script of the linker: the library has these functions and what they use, and nothing else of the layers.
    set(wanted ${CMAKE_BINARY_DIR}/generated/lib${name}.ld)
    list(JOIN symbols " " text)
    file(CONFIGURE OUTPUT ${wanted} CONTENT "EXTERN(${text})\n")
    set(wraps --wrap=malloc --wrap=calloc --wrap=realloc --wrap=free --wrap=aligned_alloc --wrap=strdup)
    get_target_property(uses vigil_${layer} LINK_LIBRARIES)
    list(TRANSFORM wraps PREPEND -Wl, OUTPUT_VARIABLE link_wraps)
    add_library(lib${name} SHARED ${ARG_SOURCES})
    target_include_directories(lib${name} PUBLIC ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(lib${name} PUBLIC ${ARG_USES} PRIVATE ${wanted} ${whole} ${uses} ssl crypto)
    target_link_options(lib${name} PRIVATE -Wl,--version-script=${map} -Wl,--as-needed
                        -Wl,--gc-sections -Wl,-Bsymbolic-functions ${link_wraps})
    set_target_properties(lib${name} PROPERTIES OUTPUT_NAME ${name} VERSION 1.0.0 SOVERSION 1
                          LINK_DEPENDS "${map};${wanted}")
    if(ARG_USES)
        # The other libraries are beside it, where it is built and where it is installed.
        set_target_properties(lib${name} PROPERTIES INSTALL_RPATH $ORIGIN BUILD_WITH_INSTALL_RPATH ON)
    endif()

    # One object, in which everything but the symbols of the map is local.
    list(JOIN symbols "\n" text)
    set(kept ${CMAKE_BINARY_DIR}/generated/lib${name}.symbols)
    file(CONFIGURE OUTPUT ${kept} CONTENT "${text}\n")
    set(archives ${uses})
    list(FILTER archives INCLUDE REGEX "^vigil_")
    list(REMOVE_ITEM archives ${whole})
    list(TRANSFORM archives REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
    set(object ${CMAKE_BINARY_DIR}/lib${name}.o)
    add_custom_command(
        OUTPUT ${CMAKE_BINARY_DIR}/lib${name}.a
        COMMAND ${CMAKE_LINKER} -r -o ${object} ${wraps} $<TARGET_OBJECTS:lib${name}>
                ${wanted} --start-group ${whole_files} ${files} --end-group
        COMMAND ${CMAKE_OBJCOPY} --keep-global-symbols=${kept} ${object}
        COMMAND ${CMAKE_COMMAND} -E rm -f ${CMAKE_BINARY_DIR}/lib${name}.a
        COMMAND ${CMAKE_AR} rcs ${CMAKE_BINARY_DIR}/lib${name}.a ${object}
        DEPENDS ${whole} ${archives} lib${name} ${kept}
        COMMAND_EXPAND_LISTS
        VERBATIM)
    add_custom_target(lib${name}_static ALL DEPENDS ${CMAKE_BINARY_DIR}/lib${name}.a)
    add_dependencies(installed lib${name} lib${name}_static)
endfunction()

# vigil_suite(PROGRAM LIBRARY FOLDER...): a program from the sources of some folders, over an
# installed library.
function(vigil_suite program library)
    list(TRANSFORM ARGN REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/\\1/*.c" OUTPUT_VARIABLE patterns)
    file(GLOB sources CONFIGURE_DEPENDS ${patterns})
    add_executable(${program} ${sources})
    target_link_libraries(${program} PRIVATE ${library})
endfunction()
