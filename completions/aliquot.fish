# SPDX-License-Identifier: Apache-2.0
# fish completion for aliquot, by the same rules as aliquot.bash: verbs and options come from
# `aliquot help` and `aliquot VERB --help`, names of slices from `aliquot smi`.

function __aliquot_help # [VERB]
    set -l words (commandline -opc)
    $words[1] help $argv 2>/dev/null
end

function __aliquot_is_verb # a verb is wanted
    set -l words (commandline -opc)
    test (count $words) -eq 1; or test (count $words) -eq 2 -a "$words[2]" = help
end

function __aliquot_value # VERB OPTION: what --help shows behind the option
    __aliquot_help $argv[1] | string match -rg '^  (?:-., |    )(?:'$argv[2]') ([^ ]+)'
    __aliquot_help $argv[1] | string match -rg '^  '$argv[2]', --[a-z-]+ ([^ ]+)'
end

function __aliquot_slices # names of the living slices, in the --slices of this line
    set -l words (commandline -opc)
    set -l at (contains -i -- --slices $words)
    set -l where
    test -n "$at"; and set where --slices $words[(math $at + 1)]
    $words[1] smi $where -o json 2>/dev/null | string match -arg '"container":"([^"]*)"' | sort -u
end

function __aliquot_offer
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l verb $words[2]
    set -l option $words[-1]
    set -l before ''
    if set -l at (contains -i -- -- $words) # a command of the user
        set -l rest $words[(math $at + 1)..-1]
        complete -C (string join ' ' -- (string escape -- $rest) $current)
        return
    end
    if string match -q -- '--*=*' $current
        set option (string split -m 1 -f 1 = -- $current)
        set before $option=
        set current (string split -m 1 -f 2 = -- $current)
    end
    set -l value (__aliquot_value $verb $option)
    switch "$value"
        case '*|*'
            printf "$before%s\n" (string split '|' -- $value)
        case FILE
            __fish_complete_path $current
        case DIR
            __fish_complete_directories $current
        case ''
            __aliquot_help $verb | string match -rg '^  (?:-., |    )(--[a-z-]+)'
            __aliquot_help $verb | string match -rg '^Usage: .*\[([a-z|]+)\]\.\.\.$' | string split '|'
            test $verb = resize; and __aliquot_slices
    end
end

complete -c aliquot -f
complete -c aliquot -n __aliquot_is_verb -a "(__aliquot_help | string replace -rf '^  ([a-z]+) +(.*)' '\$1\t\$2')"
complete -c aliquot -n 'not __aliquot_is_verb' -a '(__aliquot_offer)'
