# bash completion for callbox                                          -*- shell-script -*-
# SPDX-License-Identifier: MIT

_callbox_guarantees='tree-kill files network syscalls privileges environment memory pids cpu
        landlock cgroup'

_callbox_policy_options='--workspace --read --write --hide --tmpfs --protect --unprotect --hold
        --no-system --net --env --timeout --cpu --cpus --memory --processes --file-size --open-files --tmp-size --output
        --capture --allow-syscall --deny-syscall --on-denied --policy --require --best-effort --box
        --help'

_callbox_run_options='--cwd --stdin --spec --warden --tty -t --json --report --explain --quiet -q --sanitize'

_callbox_wrap_options='--cwd --grace --report --explain --quiet -q'

_callbox_route_options='--mode --elevate --refuse'

_callbox_python_options='--python-tools --python --python-path'

_callbox_tool_options="--tools --policies --json --call-id --explain --warden --quiet -q --approve
        $_callbox_python_options $_callbox_route_options"

_callbox_mcp_options="--files --tools --policies --no-builtin --warden --http --token-file --allow-host
        --allow-origin --body --audit $_callbox_python_options $_callbox_route_options"

# Add what compgen finds for the current word.
_callbox_offer()
{
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$@" -- "$cur")
}

# Options that take a value; all others stand alone.
_callbox_takes_value()
{
        case $1 in
        --workspace | --read | --write | --hide | --tmpfs | --protect | --unprotect | --hold | \
                --net | --env | \
                --timeout | --cpu | --cpus | --memory | --processes | --file-size | --open-files | \
                --tmp-size | --output | --capture | --allow-syscall | --deny-syscall | \
                --on-denied | --policy | --require | --box | --cwd | --stdin | --spec | --warden | --report | \
                --tools | --policies | --grace | --http | --token-file | --allow-host | --allow-origin | \
                --body | --audit | --mode | --elevate | --refuse | --python-tools | --python | \
                --python-path)
                return 0
                ;;
        esac
        return 1
}

# Complete the value of option $1. True when there was such an option, even with nothing to offer.
_callbox_value()
{
        case $1 in
        --workspace | --cwd | --tmpfs | --tools | --policies | --python-path)
                _filedir -d
                ;;
        --read | --write | --hide | --hold | --warden | --report | --token-file | --audit | --python)
                _filedir
                ;;
        --stdin)
                _filedir
                _callbox_offer -W 'none'
                ;;
        --python-tools)
                _filedir py
                ;;
        --policy | --spec)
                _filedir json
                ;;
        --net)
                _callbox_offer -W 'none loopback host'
                ;;
        --box)
                _callbox_offer -W 'auto namespaces landlock'
                ;;
        --env)
                _callbox_offer -A export
                ;;
        --mode)
                _callbox_offer -W 'strict warn off'
                ;;
        --elevate | --refuse)
                _callbox_offer -W "$(_callbox_tool_names)"
                ;;
        --on-denied)
                _callbox_offer -W 'errno kill'
                ;;
        --require)
                _callbox_offer -W "$_callbox_guarantees"
                ;;
        --cpu | --cpus | --memory | --processes | --file-size | --open-files | --output)
                _callbox_offer -W 'none'
                ;;
        *)
                _callbox_takes_value "$1"
                return
                ;;
        esac
        return 0
}

# Names of tools are asked of the command itself, once the folder is known.
_callbox_tool_names()
{
        local i
        for ((i = 3; i + 1 < cword; i++)); do
                if [[ ${words[i]} == --tools ]]; then
                        "${words[0]}" tool list --tools "${words[i + 1]}" 2>/dev/null | cut -d ' ' -f 1
                        return
                fi
        done
}

_callbox_tool()
{
        if ((cword == 2)); then
                _callbox_offer -W 'list call check schema --help'
                return
        fi
        [[ $prev == --call-id ]] && return
        _callbox_value "$prev" && return
        $split && return
        case ${words[2]} in
        list)
                _callbox_offer -W "--tools --policies --json $_callbox_route_options --help"
                ;;
        call)
                if [[ $cur == -* ]]; then
                        _callbox_offer -W "$_callbox_policy_options $_callbox_tool_options"
                else
                        _callbox_offer -W "$(_callbox_tool_names)"
                fi
                ;;
        check)
                if [[ $cur == -* ]]; then
                        _callbox_offer -W "--policies --json $_callbox_route_options --help"
                else
                        _filedir json
                fi
                ;;
        esac
}

_callbox()
{
        local cur prev words cword split
        _init_completion -s -n : || return

        local verb=${words[1]-}
        if ((cword == 1)); then
                _callbox_offer -W 'run doctor mcp policy tool warden wrap help --help --version'
                return
        fi

        local first=2 options
        case $verb in
        run)
                options="$_callbox_policy_options $_callbox_run_options"
                ;;
        wrap)
                options="$_callbox_policy_options $_callbox_wrap_options"
                ;;
        help)
                ((cword > 2)) || _callbox_offer -W 'run doctor mcp policy tool warden wrap'
                return
                ;;
        doctor)
                _callbox_offer -W '--json --help'
                return
                ;;
        mcp)
                _callbox_value "$prev" && return
                $split || _callbox_offer -W "$_callbox_policy_options $_callbox_mcp_options"
                return
                ;;
        warden)
                case $prev in
                --socket)
                        _filedir
                        ;;
                --calls | --queue | --prepared) ;;
                *)
                        _callbox_offer -W '--socket --calls --queue --prepared --allow-no-box --help'
                        ;;
                esac
                return
                ;;
        tool)
                _callbox_tool
                return
                ;;
        policy)
                if ((cword == 2)); then
                        _callbox_offer -W 'check show capabilities backends schema --help'
                        return
                fi
                case ${words[2]} in
                check)
                        if [[ $cur == -* ]]; then
                                _callbox_offer -W '--help'
                        else
                                _filedir json
                        fi
                        return
                        ;;
                show)
                        first=3
                        options=$_callbox_policy_options
                        ;;
                capabilities)
                        first=3
                        options="$_callbox_policy_options --json"
                        ;;
                backends)
                        _callbox_offer -W '--json --help'
                        return
                        ;;
                *)
                        return
                        ;;
                esac
                ;;
        *)
                return
                ;;
        esac

        # The first word that is neither an option nor the value of one starts the program.
        local i
        for ((i = first; i < cword; i++)); do
                if [[ ${words[i]} == -- ]]; then
                        ((i++))
                        break
                elif _callbox_takes_value "${words[i]}"; then
                        # Where = breaks words it stands between the option and its value.
                        [[ ${words[i + 1]-} == '=' ]] && ((i++))
                        ((i++))
                elif [[ ${words[i]} != -* ]]; then
                        break
                fi
        done
        if ((i < cword)) || [[ $verb == @(run|wrap) && ${words[cword - 1]} == -- && $i -eq $cword ]]; then
                [[ $verb == @(run|wrap) ]] && _command_offset "$i"
                return
        fi

        _callbox_value "$prev" && return
        $split && return

        if [[ $cur == -* ]]; then
                _callbox_offer -W "$options"
        elif [[ $verb == @(run|wrap) ]]; then
                _command_offset "$cword"
        else
                _filedir json
        fi
} && complete -F _callbox callbox

# ex: filetype=sh
