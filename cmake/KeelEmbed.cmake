# keel_embed(<target> HEADER <name.h> [FILES <file>...] [MODULES <module>...])
#
# Compiles files into a target. For tools/keel/report/page.css the header declares
# `std::string_view PageCss()` in namespace keel::embedded; the text is part of the program, so that
# it needs no file at run time. Of the built file of a target `noop_module` it is `NoopModule()`, and
# the bytes are what they are: no text.
#
# Run as a script (cmake -P) this file writes one of the sources: IN, OUT and FUNCTION say which.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${IN} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(REGEX REPLACE "((.......){14})" "\\1\n" bytes "${bytes}")
  file(WRITE ${OUT}
    "#include <string_view>\n\n"
    "namespace keel::embedded {\n\n"
    "static constexpr char kText[] = {\n${bytes}'\\0'};\n\n"
    "std::string_view ${FUNCTION}();\n"
    "std::string_view ${FUNCTION}() { return {kText, sizeof kText - 1}; }\n\n"
    "}  // namespace keel::embedded\n")
  return()
endif()

set(KEEL_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(keel_embed target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER" "FILES;MODULES")
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  set(declarations "")
  foreach(file IN LISTS arg_FILES arg_MODULES)
    get_filename_component(name ${file} NAME)
    set(from ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    if(file IN_LIST arg_MODULES)
      set(from $<TARGET_FILE:${file}>)
    endif()
    string(REGEX REPLACE "[._]" ";" words ${name})
    set(function "")
    foreach(word IN LISTS words)
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND function ${first}${rest})
    endforeach()
    set(source ${folder}/${name}.cc)
    add_custom_command(OUTPUT ${source}
      COMMAND ${CMAKE_COMMAND} -D IN=${from} -D OUT=${source} -D FUNCTION=${function}
              -P ${KEEL_EMBED_SCRIPT}
      DEPENDS ${file} ${KEEL_EMBED_SCRIPT}
      COMMENT "Embedding ${file}"
      VERBATIM)
    target_sources(${target} PRIVATE ${source})
    string(APPEND declarations "std::string_view ${function}();\n")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/${arg_HEADER} @ONLY CONTENT
"// Written by cmake/KeelEmbed.cmake.
#pragma once

#include <string_view>

namespace keel::embedded {

${declarations}
}  // namespace keel::embedded
")
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
