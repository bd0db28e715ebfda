# A search tree of mutable structs whose links may be nothing.
mutable struct Node
    key::Int64
    count::Int64
    left::Union{Nothing, Node}
    right::Union{Nothing, Node}
end

function insert!(root::Node, key::Int64)::Int64
    node = root
    while true
        if key == node.key
            node.count += 1
            return node.count
        end
        if key < node.key
            next = node.left
            if next !== nothing
                node = next
                continue
            end
            node.left = Node(key, 1, nothing, nothing)
        else
            after = node.right
            if after !== nothing
                node = after
                continue
            end
            node.right = Node(key, 1, nothing, nothing)
        end
        return 1
    end
end

function walk(node::Node, depth::Int64)::Int64
    s = node.count * depth + node.key
    l = node.left
    if l !== nothing
        s += walk(l, depth + 1)
    end
    r = node.right
    if r !== nothing
        s += walk(r, depth + 1)
    end
    return s & 1073741823
end

function run(a::Int64, b::Int64)::Float64
    s = 0
    x = 3
    for r in 1:b
        root = Node(a >> 1, 0, nothing, nothing)
        for i in 1:a
            x = (x * 1103515245 + 12345) & 2147483647
            s += insert!(root, (x >> 8) % a)
        end
        s += walk(root, 1)
    end
    return Float64(s)
end
