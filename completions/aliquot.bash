# SPDX-License-Identifier: Apache-2.0
# bash completion for aliquot. Verbs and options come from the program itself: `aliquot help` and
# `aliquot VERB --help`. What --help shows behind an option says what completes its value: words as
# report|kill, FILE or DIR.

_aliquot_options() { # VERB: lines of "--name VALUE"
        "${COMP_WORDS[0]}" help "$1" 2>/dev/null | sed -n 's/^  \(-., \|    \)\(--[a-z-]*\) \{0,1\}\([^ ]*\).*/\2 \3/p'
}

_aliquot_words() { # VERB: what may stand beside the options, as [machine|node|cluster]... in its usage
        "${COMP_WORDS[0]}" help "$1" 2>/dev/null | sed -n 's/^Usage: .*\[\([a-z|]*\)\]\.\.\.$/\1/p' | tr '|' ' '
}

_aliquot_value() { # VERB OPTION: what --help shows behind the option; empty where it takes no value
        case $2 in
        -?) "${COMP_WORDS[0]}" help "$1" 2>/dev/null | sed -n "s/^  $2, --[a-z-]* \{0,1\}\([^ ]*\).*/\1/p" ;;
        --*) _aliquot_options "$1" | sed -n "s/^$2 //p" ;;
        esac
}

_aliquot_slices() { # names of the living slices, in the --slices of this line
        local where=() i
        for ((i = 1; i < COMP_CWORD - 1; i++)); do
                if [ "${COMP_WORDS[i]}" = --slices ]; then where=(--slices "${COMP_WORDS[i + 1]}"); fi
        done
        "${COMP_WORDS[0]}" smi "${where[@]}" -o json 2>/dev/null | grep -o '"container":"[^"]*"' | cut -d '"' -f 4 | sort -u
}

_aliquot() {
        local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} previous=${COMP_WORDS[COMP_CWORD - 1]} value words i
        COMPREPLY=()
        if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$verb" = help ]; }; then
                mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" help | sed -n 's/^  \([a-z]*\) .*/\1/p')" -- "$cur")
                return
        fi
        for ((i = 2; i < COMP_CWORD; i++)); do # behind -- stands a command of the user
                if [ "${COMP_WORDS[i]}" = -- ]; then
                        mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
                        return
                fi
        done
        if [ "$cur" = = ]; then # bash takes --option=value apart
                cur=''
        elif [ "$previous" = = ]; then
                previous=${COMP_WORDS[COMP_CWORD - 2]}
        fi
        value=$(_aliquot_value "$verb" "$previous")
        case $value in
        *"|"*) mapfile -t COMPREPLY < <(compgen -W "${value//|/ }" -- "$cur") ;;
        FILE) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        DIR) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        "")
                words="$(_aliquot_words "$verb") $(_aliquot_options "$verb" | cut -d ' ' -f 1)"
                if [ "$verb" = resize ]; then words+=" $(_aliquot_slices)"; fi
                mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
                ;;
        esac
}

complete -o filenames -F _aliquot aliquot
